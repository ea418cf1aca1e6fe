import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';
import type { Clock } from '#shared/time/clock.ts';

/** Time passes in such steps, so that what a timer sets off can set timers of its own. */
const STEP_MS = 50;

export interface DrivenTimers {
  /** Lets this much time pass, in no time; whatever falls due meanwhile happens at its moment. */
  pass(ms: number): Promise<void>;
  /** Lets everything happen that needs no time. */
  settle(): Promise<void>;
}

/** The clock of driven timers, by which durations are measured, too. */
export const drivenClock: Clock = { now: () => Date.now() };

/** Has timers driven by the test from now on; what it returns ends that. */
function drive(
  { mock }: Pick<TestContext, 'mock'>,
  options: Parameters<TestContext['mock']['timers']['enable']>[0],
): () => void {
  mock.timers.enable(options);
  // Modules that import the functions of node:timers/promises by name get the driven ones only so.
  syncBuiltinESMExports();
  return () => {
    mock.timers.reset();
    syncBuiltinESMExports();
  };
}

/** Timers and the date stand still, until the end of the test, unless the test moves them. */
export function driveTimers(context: Pick<TestContext, 'mock' | 'after'>, now = 0): DrivenTimers {
  context.after(drive(context, { apis: ['setTimeout', 'Date'], now }));
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

/** Does `work`, in which waits take no time: timers fire in their order, one step of time after each turn of the event loop. */
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
