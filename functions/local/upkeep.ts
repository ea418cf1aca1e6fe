import type { Log } from '#shared/telemetry/log.ts';

export interface Task {
  readonly name: string;
  readonly everyMs: number;
  run(): void | Promise<void>;
}

export interface Upkeep {
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
      log.error('upkeep.failed', { task: name, reason: error });
    }
  };
  const intervals = tasks.map((task) =>
    setInterval(() => {
      running = running.then(() => perform(task));
    }, task.everyMs),
  );
  return {
    stop() {
      for (const interval of intervals) clearInterval(interval);
      return running;
    },
  };
}
