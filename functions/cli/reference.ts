import type { Command, Help } from 'commander';
import { EXIT } from './exit-codes.ts';

/** Columns beyond which no line of help is broken: the page does that. */
const NO_WRAPPING = 10_000;

/** What the program can do, as a page of Markdown. */
export function referenceOf(program: Command): string {
  const help = program.createHelp();
  const commands = leavesOf(program, help);
  return `# Command line

<!-- Made from the program by npm run docs: change functions/cli, and run that. -->

\`npx taintward\` in a clone, or \`kubectl taintward\` ([how](#as-a-plugin-of-kubectl)). ${program.description()}

Commands work on the \`npm start\` that runs in the same directory, else on a deployment's table, unless one of them is named:

${optionsTable(program, help)}

They show what they show with \`-o table\`, \`-o wide\` (all columns), \`-o json\` or \`-o yaml\`; moments are ISO 8601 texts in UTC. Colours
and progress are for terminals; \`NO_COLOR\` and \`FORCE_COLOR\` say otherwise. On a terminal that is too narrow for a table its cells go on
in further lines; with \`-o wide\`, and in a pipe, each row is one line.

| exit code | means |
|---|---|
| ${EXIT.fine} | done, or shown |
| ${EXIT.failed} | it could not be done; standard error says why, in a sentence |
| ${EXIT.needsYou} | shown, and something breaks or needs you: \`doctor\`, \`lint\`, \`status\`, \`what-if\` |
| ${EXIT.cannotKnow} | shown as far as it is known, and something cannot be known now: \`pending\`, \`status\` |
| ${EXIT.usage} | the command line cannot be read |

Completion: \`source <(taintward complete bash)\`, likewise \`zsh\`; for fish \`taintward complete fish | source\`. It knows the names of clusters.

## Commands

${commands.map((command) => `- [\`${nameOf(command)}\`](#${anchorOf(command)}): ${command.description()}`).join('\n')}

${commands.map((command) => sectionOf(command, help)).join('\n')}
## As a plugin of kubectl

With \`bin\` of a clone on the PATH, \`kubectl taintward\` is this program: kubectl finds \`bin/kubectl-taintward\` there, and for
completions \`bin/kubectl_complete-taintward\`. \`npm run pack:kubectl -- DIRECTORY URL\` makes of it one program in an archive, and the
manifest by which [krew](https://krew.sigs.k8s.io) installs that from the URL; [releases](../how-to/verify-release.md) have both, and an npm package.
`;
}

/** All commands that do something. */
export function leavesOf(command: Command, help: Help): readonly Command[] {
  const children = help.visibleCommands(command).filter((each) => each.name() !== 'help');
  return children.length === 0 ? [command] : children.flatMap((each) => leavesOf(each, help));
}

/** With the names of those that it is a part of. */
const nameOf = (command: Command): string =>
  command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();

const anchorOf = (command: Command): string => nameOf(command).replaceAll(' ', '-');

function sectionOf(command: Command, help: Help): string {
  const args = help.visibleArguments(command);
  const lines = args.map(
    (each) => `| \`${help.argumentTerm(each)}\` | ${cell(help.argumentDescription(each))} |\n`,
  );
  const parts = [
    `### ${nameOf(command)}\n\n${sentence(command.description())}\n`,
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

/** As its help has them. */
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

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

/** A bar ends a cell, and what stands in pointed brackets is taken for HTML. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
