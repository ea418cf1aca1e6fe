import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';
import nodeTimers from 'node:timers';
import timersPromises from 'node:timers/promises';
import type { Clock } from '#shared/time/clock.ts';

/** Time passes in such steps, so that a timer's effects can set further timers. */
const STEP_MS = 50;
/** After so many steps in which no timer was set or due, the next steps without a due timer are one. */
const QUIET_STEPS = 4;

export interface DrivenTimers {
  /** Simulates the passing of this much time; timers fire at their simulated times. */
  pass(ms: number): Promise<void>;
  /** Waits until everything has happened that needs no time. */
  settle(): Promise<void>;
}

/** The clock of driven timers, which also measures durations. */
export const drivenClock: Clock = { now: () => Date.now() };

type Setter = (...args: readonly unknown[]) => unknown;
/** The objects with functions that set timers, and the position of the delay among their arguments. */
const SETTERS = [
  [globalThis, 1],
  [nodeTimers, 1],
  [timersPromises, 0],
] as unknown as readonly (readonly [Record<string, Setter>, number])[];

/** When the timers of a test are due, whether they are still wanted or not. */
class DueTimes {
  /** The number of timers that were set. */
  count = 0;
  readonly #steps = new Set<number>();
  readonly #intervals: { readonly from: number; readonly everyMs: number }[] = [];

  /** Notes the timers that these functions set from now on. */
  note(names: readonly string[]): void {
    for (const [timers, delayAt] of SETTERS)
      for (const name of names) {
        const set = timers[name];
        if (!set) continue;
        timers[name] = (...args) => {
          this.#add(Number(args[delayAt]), name === 'setInterval');
          return set(...args);
        };
      }
  }

  /** Reports whether a timer may be due after `from`, and at `to` at the latest: that is up to a step later. */
  any(from: number, to: number): boolean {
    return (
      this.#steps.has(Math.floor(from / STEP_MS)) ||
      this.#steps.has(Math.floor(to / STEP_MS)) ||
      this.#intervals.some((each) => {
        const times = (at: number) => Math.floor((at - each.from) / each.everyMs);
        return times(from) < times(to);
      })
    );
  }

  #add(delayMs: number, isRepeated: boolean): void {
    this.count += 1;
    const afterMs = delayMs >= 1 ? delayMs : 1;
    if (isRepeated) this.#intervals.push({ from: Date.now(), everyMs: afterMs });
    else this.#steps.add(Math.floor((Date.now() + afterMs) / STEP_MS));
  }
}

/** Lets the test drive timers from now on; returns a function that ends it. */
function drive(
  { mock }: Pick<TestContext, 'mock'>,
  options: Parameters<TestContext['mock']['timers']['enable']>[0],
  due?: DueTimes,
): () => void {
  mock.timers.enable(options);
  due?.note((options?.apis ?? []).filter((api) => api.startsWith('set')));
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
  const due = new DueTimes();
  context.after(drive(context, { apis, now }, due));
  const settle = async (): Promise<void> => {
    for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    settle,
    async pass(ms) {
      await settle();
      let quiet = 0;
      for (let left = ms; left > 0; ) {
        const [from, known] = [Date.now(), due.count];
        let passed = STEP_MS;
        if (quiet >= QUIET_STEPS)
          while (passed < left && !due.any(from + passed - STEP_MS, from + passed)) passed += STEP_MS;
        passed = Math.min(passed, left);
        const isDue = due.any(from + passed - STEP_MS, from + passed);
        context.mock.timers.tick(passed);
        await settle();
        left -= passed;
        quiet = isDue || due.count > known ? 0 : quiet + 1;
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
