import type { TestContext } from 'node:test';
import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import type { FleetOptions } from '#functions/cli/fleet.ts';
import { createProgram } from '#functions/cli/program.ts';
import { SqliteLeases } from '#functions/local/sqlite-leases.ts';
import { SqliteRulebook } from '#functions/local/sqlite-rulebook.ts';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { Operator } from '#shared/clusters/operator.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

export const NOW = Date.UTC(2026, 10, 21, 12);

const CLUSTERS = ['prod', 'stage'].map(clusterName);

/** The command line, spoken by anna, on a fleet of the clusters `prod` and `stage` of which nothing was said. */
export function commandLine(t: TestContext) {
  const store = new SqliteStore({ path: ':memory:' });
  t.after(() => store.close());
  const rulebook = new SqliteRulebook({ database: store.database });
  const leases = new SqliteLeases({ database: store.database });
  const clock = new DrivenClock(NOW);
  const asked: string[] = [];
  const state = {
    printed: '',
    complaint: '',
    where: undefined as FleetOptions | undefined,
    /** What is answered at the terminal; `undefined`: there is none. */
    answer: undefined as boolean | undefined,
    /** Messages on `evictions-due`. */
    sent: [] as string[],
  };
  const run = async (...args: string[]): Promise<string> => {
    state.printed = '';
    const { answer } = state;
    const deps: Pick<CliDeps, 'fleet' | 'clock' | 'print' | 'confirm'> = {
      fleet: (where) => {
        state.where = where;
        return {
          rulebook,
          store,
          leases,
          clusters: async () => CLUSTERS,
          manages: async (cluster) => CLUSTERS.includes(cluster),
          operator: async () => new Operator({ rulebook, clock, who: 'anna' }),
          dueQueue: async () => ({
            send: async (messages) => {
              state.sent.push(...messages.map(({ body }) => body));
              return [];
            },
          }),
        };
      },
      clock,
      print: (text) => {
        state.printed += text;
      },
      confirm:
        answer === undefined
          ? undefined
          : async (question) => {
              asked.push(question);
              return answer;
            },
    };
    const program = createProgram(deps as CliDeps);
    quiet(program, (text) => {
      state.complaint += text;
    });
    await program.parseAsync(args, { from: 'user' });
    return state.printed;
  };
  return { run, state, asked, store, rulebook, leases, clock };
}

/** Has a program throw where it would exit. */
export function quiet(command: Command, writeErr: (text: string) => void): void {
  command.exitOverride().configureOutput({ writeErr });
  for (const each of command.commands) quiet(each, writeErr);
}
