import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';
import type { Clock } from '#shared/time/clock.ts';

/** Time passes in such steps, so that a timer's effects can set further timers. */
const STEP_MS = 50;

export interface DrivenTimers {
  /** Simulates the passing of this much time; timers fire at their simulated times. */
  pass(ms: number): Promise<void>;
  /** Waits until everything has happened that needs no time. */
  settle(): Promise<void>;
}

/** The clock of driven timers, which also measures durations. */
export const drivenClock: Clock = { now: () => Date.now() };

/** Lets the test drive timers from now on; returns a function that ends it. */
function drive(
  { mock }: Pick<TestContext, 'mock'>,
  options: Parameters<TestContext['mock']['timers']['enable']>[0],
): () => void {
  mock.timers.enable(options);
  // Without this, modules that import the functions of node:timers/promises by name would get the real ones.
  syncBuiltinESMExports();
  return () => {
    mock.timers.reset();
    syncBuiltinESMExports();
  };
}

/**
 * Stops timers and the date until the end of the test; only the test moves them. `running`: intervals began before, so
 * that they stay real: nothing else could end them.
 */
export function driveTimers(
  context: Pick<TestContext, 'mock' | 'after'>,
  now = 0,
  intervals: 'driven' | 'running' = 'driven',
): DrivenTimers {
  const apis = ['setTimeout', 'Date', ...(intervals === 'driven' ? (['setInterval'] as const) : [])] as const;
  context.after(drive(context, { apis, now }));
  const settle = async (): Promise<void> => {
    for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    settle,
    async pass(ms) {
      await settle();
      for (let left = ms; left > 0; left -= STEP_MS) {
        context.mock.timers.tick(Math.min(STEP_MS, left));
        await settle();
      }
    },
  };
}

/** Runs `work` without real waits: timers fire in order, one step of time after each turn of the event loop. */
export async function inNoTime<T>(context: Pick<TestContext, 'mock'>, work: () => Promise<T>): Promise<T> {
  const end = drive(context, { apis: ['setTimeout'] });
  try {
    let done = false;
    const result = work();
    const settled = () => {
      done = true;
    };
    result.then(settled, settled);
    while (!done) {
      await new Promise((resolve) => setImmediate(resolve));
      context.mock.timers.tick(STEP_MS);
    }
    return await result;
  } finally {
    end();
  }
}
