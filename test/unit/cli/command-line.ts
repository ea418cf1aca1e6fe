import type { TestContext } from 'node:test';
import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import type { FleetChoice } from '#shared/operations/fleet/fleet-choice.ts';
import { assertPublished } from '#test/contracts/published-schemas.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { plainOutput } from './plain-output.ts';

export const NOW = Date.UTC(2026, 10, 21, 12);

/**
 * The command line of user anna on a fleet of the clusters `prod` and `stage`, which have no rules and can't be
 * reached. `parts` replace parts of the fleet.
 */
export function commandLine(t: TestContext, parts: Partial<Fleet> = {}) {
  const clock = new DrivenClock(NOW);
  const { fleet, sent, store, rulesStore, leases, letters } = embeddedFleet(
    t,
    { clusters: ['prod', 'stage'], clock },
    {
      cluster: async (name) => {
        throw new FleetError(`Cluster ${name} can't be reached from here.`);
      },
      ...parts,
    },
  );
  const questions: string[] = [];
  const output = plainOutput();
  const state = Object.assign(output.state, {
    complaint: '',
    where: undefined as FleetChoice | undefined,
    /** Answer at the terminal. `undefined`: there is no terminal. */
    answer: undefined as boolean | undefined,
    /** Messages on `evictions-due`. */
    sent,
  });
  const run = async (...args: string[]): Promise<string> => {
    state.printed = '';
    state.exitCode = 0;
    const { answer } = state;
    const deps: Omit<CliDeps, 'connect'> = {
      fleet: async (where) => {
        state.where = where;
        return fleet;
      },
      live: async () => fleet,
      clock,
      ...output.deps,
      confirm:
        answer === undefined
          ? undefined
          : async (question) => {
              questions.push(question);
              return answer;
            },
    };
    const program = createProgram(deps as CliDeps);
    quiet(program, (text) => {
      state.complaint += text;
    });
    await program.parseAsync(args, { from: 'user' });
    assertPublished(args, state.printed);
    return state.printed;
  };
  return { run, state, questions, fleet, store, rulesStore, leases, letters, clock };
}

/** Makes a program throw where it would exit. */
export function quiet(command: Command, writeErr: (text: string) => void): void {
  command.exitOverride().configureOutput({ writeErr });
  for (const each of command.commands) quiet(each, writeErr);
}
