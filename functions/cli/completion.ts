import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';
import type { FleetChoice } from '#shared/operations/fleet/fleet-choice.ts';
import type { CliDeps } from './command.ts';
import { withExamples } from './output.ts';

/** Longest time for which a completion waits for cluster names. */
const NAMES_MS = 1_500;
/** Names of arguments and options whose values are cluster names. */
const OF_CLUSTERS = ['cluster', 'clusters'];

/** `taintward completion`: shell scripts. Must be added after all other commands. */
export function addCompletion(program: Command, deps: CliDeps): void {
  const root = tab(program, { completionCommandName: 'completion' });
  let names: readonly string[] = [];
  const complete = (add: (value: string, description: string) => void) => {
    for (const name of names) add(name, 'cluster');
  };
  for (const { arguments: args, options } of root.commands.values()) {
    for (const known of [...args, ...options]) {
      const [name, place] = known;
      if (OF_CLUSTERS.includes(name)) place.handler = complete;
    }
  }
  const command = program.commands.find((each) => each.name() === 'completion');
  if (command) {
    command
      .summary('Generate a shell completion script')
      .description('Generate a shell completion script. It completes commands, options, and cluster names.')
      .helpGroup('Maintain:');
    withExamples(command, 'source <(taintward completion bash)', 'taintward completion fish | source');
  }
  // The script calls this hidden command for suggestions.
  program.commands
    .find((each) => each.name() === 'complete')
    ?.hook('preAction', async () => {
      const { rawArgs } = program as Command & { readonly rawArgs: readonly string[] };
      const words = rawArgs.slice(rawArgs.indexOf('--') + 1);
      if (rawArgs.includes('--')) names = await clusterNames(words, deps);
    });
}

/** The list is empty if the clusters aren't known in time. Never rejects. */
async function clusterNames(words: readonly string[], deps: CliDeps): Promise<readonly string[]> {
  const givenBy = (flag: string) => {
    const parts = words.flatMap((word) => (word.startsWith(`${flag}=`) ? word.split(/=(.*)/s, 2) : word));
    const at = parts.lastIndexOf(flag);
    return at < 0 ? undefined : parts[at + 1];
  };
  const given = { stateDir: givenBy('--state-dir'), table: givenBy('--table') };
  const env = { stateDir: process.env['TAINTWARD_STATE_DIR'], table: process.env['TAINTWARD_TABLE'] };
  const { stateDir, table } = given.stateDir || given.table ? given : env;
  const choice: FleetChoice = { ...(stateDir ? { stateDir } : {}), ...(table ? { table } : {}) };
  const late = AbortSignal.timeout(NAMES_MS);
  const none = new Promise<readonly string[]>((resolve) => late.addEventListener('abort', () => resolve([])));
  try {
    const fleet = await deps.fleet(choice);
    return await Promise.race([fleet.clusters(), none]).finally(() => fleet.close());
  } catch {
    return [];
  }
}
