import type { Log } from '#shared/telemetry/log.ts';

export interface Task {
  readonly name: string;
  readonly everyMs: number;
  run(): void | Promise<void>;
}

export interface Upkeep {
  /** Has a task performed besides, behind the one that is under way. */
  now(task: Task): void;
  /** Begins nothing more; resolves when what was begun is done. */
  stop(): Promise<void>;
}

/** Performs tasks again and again, one at a time. One that fails is told of, and tried again when its time comes. */
export function startUpkeep(tasks: readonly Task[], log: Log): Upkeep {
  let running = Promise.resolve();
  const perform = async ({ name, run }: Task): Promise<void> => {
    try {
      await run();
    } catch (error) {
      log.error('maintenance.failed', { task: name, error });
    }
  };
  let stopped = false;
  const now = (task: Task): void => {
    if (!stopped) running = running.then(() => perform(task));
  };
  const intervals = tasks.map((task) => setInterval(() => now(task), task.everyMs));
  return {
    now,
    stop() {
      stopped = true;
      for (const interval of intervals) clearInterval(interval);
      return running;
    },
  };
}
