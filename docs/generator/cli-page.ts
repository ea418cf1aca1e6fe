import type { Command, Help } from 'commander';
import { EXIT } from '#functions/cli/exit-codes.ts';

/** A width that help lines never reach, so they aren't wrapped: the page wraps them. */
const NO_WRAPPING = 10_000;

/** Returns the reference of all commands as a page of Markdown. */
export function referenceOf(program: Command): string {
  const help = program.createHelp();
  const commands = leavesOf(program, help);
  return `# Command line

<!-- Made from the program by npm run docs: change functions/cli, and run that. -->

Look up every command, with its options and examples. Run \`npx taintward\` in a clone, or \`kubectl taintward\` ([plugin](#kubectl-plugin)). The AWS SDK selects
the AWS account and region: \`AWS_PROFILE\`, \`AWS_REGION\`.

Commands use the \`npm start\` that runs in the same directory, else a deployment's table. These options select another one:

${optionsTable(program, help)}

Output formats are \`-o table\`, \`-o wide\` (all columns), \`-o json\`, and \`-o yaml\`; times are ISO 8601 in UTC. Colors and progress appear on terminals
only, unless \`NO_COLOR\` or \`FORCE_COLOR\` is set. On a narrow terminal, table cells wrap. With \`-o wide\`, and in a pipe, each row is one line.

Every command that changes evictions has \`--dry-run\`, which prints what would change, and changes nothing ([preview an act](../how-to/stop-and-hold.md#preview-an-act)).
Only \`tolerations\` has \`--apply\` instead, and previews without it.

| exit code | meaning |
|---|---|
| ${EXIT.fine} | success |
| ${EXIT.failed} | failure; standard error holds the cause in one sentence |
| ${EXIT.actionRequired} | an action is required, or something breaks: \`doctor\`, \`status\`, \`what-if\`; or something would change: \`apply --dry-run\`, \`policy diff\` |
| ${EXIT.cannotKnow} | the state is unknown or may be outdated: \`explain\`, \`pending\`, \`status\`, and any command that used the state of a stopped \`npm start\` |
| ${EXIT.usage} | invalid usage |

Completion: \`source <(taintward completion bash)\`, likewise \`zsh\`; for fish \`taintward completion fish | source\`. Cluster names are completed too.

## Commands

${commands.map((command) => `- [\`${nameOf(command)}\`](#${anchorOf(command)}): ${command.summary()}`).join('\n')}

${commands.map((command) => sectionOf(command, help)).join('\n')}
## kubectl plugin

To run this program as \`kubectl taintward\`, add \`bin\` of a clone to the PATH: kubectl finds \`bin/kubectl-taintward\`, and for completions
\`bin/kubectl_complete-taintward\`. \`npm run pack:kubectl -- DIRECTORY URL\` packs it into an archive, and writes the manifest by which
[krew](https://krew.sigs.k8s.io) installs the archive from the URL. [Releases](../how-to/verify-release.md) contain both, and an npm package.
`;
}

/** Returns all commands without subcommands. */
export function leavesOf(command: Command, help: Help): readonly Command[] {
  const children = help.visibleCommands(command).filter((each) => each.name() !== 'help');
  return children.length === 0 ? [command] : children.flatMap((each) => leavesOf(each, help));
}

const nameOf = (command: Command): string =>
  command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();

const anchorOf = (command: Command): string => nameOf(command).replaceAll(' ', '-');

function sectionOf(command: Command, help: Help): string {
  const args = help.visibleArguments(command);
  const lines = args.map(
    (each) => `| \`${help.argumentTerm(each)}\` | ${cell(help.argumentDescription(each))} |\n`,
  );
  const parts = [
    `### ${nameOf(command)}\n\n${command.description()}\n`,
    `\`\`\`\n${help.commandUsage(command).replace('[options] ', '')}\n\`\`\`\n`,
    ...(args.length === 0 ? [] : [`| argument | |\n|---|---|\n${lines.join('')}`]),
    ...(optionsOf(command, help).length === 0 ? [] : [`${optionsTable(command, help)}\n`]),
    examplesOf(command),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

const optionsOf = (command: Command, help: Help) =>
  help.visibleOptions(command).filter(({ long }) => long !== '--help' && long !== '--version');

function optionsTable(command: Command, help: Help): string {
  const rows = optionsOf(command, help).map(
    (option) => `| \`${help.optionTerm(option)}\` | ${cell(help.optionDescription(option))} |`,
  );
  return ['| option | |', '|---|---|', ...rows].join('\n');
}

function examplesOf(command: Command): string {
  let written = '';
  command.configureOutput({
    writeOut: (text) => {
      written += text;
    },
    getOutHelpWidth: () => NO_WRAPPING,
  });
  command.outputHelp();
  const [, examples = ''] = written.split('\nExamples:\n');
  const lines = examples.split('\n').map((line) => line.trim());
  return examples === '' ? '' : `\`\`\`sh\n${lines.join('\n').trim()}\n\`\`\`\n`;
}

/** Escapes bars, which end a cell, and angle brackets, which start HTML. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
