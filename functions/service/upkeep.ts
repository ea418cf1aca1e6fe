import type { Log } from '#shared/telemetry/log.ts';

export interface Task {
  readonly name: string;
  readonly everyMs: number;
  run(): void | Promise<void>;
}

export interface Upkeep {
  /** Runs a task once more, after the current one. */
  now(task: Task): void;
  /** Starts no more tasks, and resolves when the current ones are done. */
  stop(): Promise<void>;
}

/** Tasks run one at a time. A failure is logged, and the task is retried after its interval. */
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
    running = running.then(() => (stopped ? undefined : perform(task)));
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
