import type { Connect } from '#shared/clusters/connect.ts';
import type { ClusterRegistry } from '#shared/clusters/registry.ts';
import type { Clock } from '#shared/time/clock.ts';

/** What commands need of the world. */
export interface CliDeps {
  registry(tableName: string): ClusterRegistry;
  readonly connect: Connect;
  readonly clock: Clock;
  /** To standard output; the text ends with a line feed. */
  print(text: string): void;
}

/** The operator asked for something that cannot be done; the message is one sentence that says what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
}
