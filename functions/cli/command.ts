import type { Connect } from '#shared/clusters/connect.ts';
import type { ClusterRegistry } from '#shared/clusters/registry.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { History } from '#shared/store/history.ts';
import type { Clock } from '#shared/time/clock.ts';

/** What commands need of the world. */
export interface CliDeps {
  registry(tableName: string): ClusterRegistry;
  /** What is stored in a table, or in the state directory of a service that runs in one process. */
  history(where: { readonly table: string } | { readonly state: string }): OpenHistory;
  readonly connect: Connect;
  readonly clock: Clock;
  /** To standard output; the text ends with a line feed. */
  print(text: string): void;
}

export interface OpenHistory extends History {
  /** The clusters that there may be history of. */
  clusters(): Promise<readonly ClusterName[]>;
  close(): void;
}

/** The operator asked for something that cannot be done; the message is one sentence that says what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
}
