import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { App } from 'aws-cdk-lib';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import type { CliDeps } from '#functions/cli/command.ts';
import { splitNames } from '#functions/cli/explain.ts';
import { createProgram } from '#functions/cli/program.ts';
import { parseOptions } from '#functions/service/options.ts';
import { callsOf } from '#test/transcripts/dry-run.ts';
import { FOLLOWED_PAGES } from '#test/transcripts/followed-pages.ts';
import { blocksOf, commandsOf, nameOf, pageText } from '#test/transcripts/page.ts';
import { readConfig } from '../../../cdk/config.ts';
import { leavesOf } from '../../../docs/generator/cli-page.ts';

const CDK_COMMANDS = ['bootstrap', 'deploy', 'destroy', 'diff', 'synth'];
/** Options of the AWS CDK that pages name. */
const CDK_FLAGS = ['--require-approval', '--force', '--import-existing-resources', '--tags', '--qualifier'];

const { scripts } = JSON.parse(readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

/**
 * Reports whether a page is written by hand: the reference of the command line is generated, and the index has no
 * commands.
 */
const isWritten = (name: string): boolean => !['reference/cli.md', 'README.md'].includes(name);

const commandsOfPage = (page: string): readonly string[] =>
  blocksOf(pageText(page))
    .filter(({ language }) => language === 'sh')
    .flatMap(commandsOf);

test('each command of README and docs is run by a suite, or has a reason why not', () => {
  const pages = ['README.md', ...globSync('**/*.md', { cwd: join(PROJECT_DIR, 'docs') }).filter(isWritten)];
  const withCommands = pages.filter((page) => commandsOfPage(page).length > 0);
  assert.deepEqual(Object.keys(FOLLOWED_PAGES).toSorted(), withCommands.toSorted());
  for (const [page, { by: suite, because, except = {} }] of Object.entries(FOLLOWED_PAGES)) {
    const names = commandsOfPage(page).map(nameOf);
    const stale = Object.keys(except).filter((name) => !names.includes(name));
    assert.deepEqual(stale, [], `${page} has no such command any more`);
    const unexplained = suite || because ? [] : names.filter((name) => !(name in except));
    assert.deepEqual(unexplained, [], `${page} has commands that nobody runs`);
  }
});

/** Parses the arguments of a program; throws where the program would reject them. */
const READERS: Readonly<Record<string, (args: readonly string[]) => void>> = {
  npx: ([program = '', ...args]) => {
    const reader = { cdk: readCdk, cdklocal: readCdk, taintward: readTaintward }[program];
    assert.ok(reader, `npx ${program}`);
    reader(args);
  },
  taintward: (args) => readTaintward(args),
  npm: ([command = '', ...args]) => {
    if (command === 'ci') return;
    const script = command === 'run' ? args.find((word) => !word.startsWith('-')) : command;
    assert.ok(script !== undefined && script in scripts, `npm ${command} ${script}`);
    if (script === 'start') parseOptions(args.slice(args.indexOf('--') + 1));
  },
  kubectl: (args) => {
    const folder = args[args.indexOf('-k') + 1];
    if (!args.includes('-k') || folder === undefined) return;
    assert.ok(existsSync(join(PROJECT_DIR, folder, 'kustomization.yaml')), folder);
  },
};

/** Parses the arguments with the command line's parser, without running a command. */
function readTaintward(args: readonly string[]): void {
  let printed = '';
  const note = (text: string) => {
    printed += text;
  };
  const program = createProgram({ print: note, complain: note } as unknown as CliDeps);
  for (const command of leavesOf(program, program.createHelp())) command.action(() => undefined);
  try {
    program.parse(splitNames(args), { from: 'user' });
  } catch (error) {
    const { code } = error as { readonly code?: string };
    if (code !== 'commander.helpDisplayed') assert.fail(`taintward ${args.join(' ')}: ${printed || error}`);
  }
}

function readCdk([command = '', ...args]: readonly string[]): void {
  assert.ok(CDK_COMMANDS.includes(command), `cdk ${command}`);
  const context: Record<string, string> = {};
  for (let at = 0; at < args.length; at++) {
    const [word = '', setting = ''] = args.slice(at, at + 2);
    if (word === '-c') {
      const [key = '', ...value] = setting.split('=');
      // The user has to fill in the omitted value.
      if (!setting.includes('…')) context[key] = value.join('=');
      at++;
    } else {
      assert.ok(
        !word.startsWith('-') || CDK_FLAGS.includes(word.split('=')[0] ?? ''),
        `cdk ${command} ${word}`,
      );
    }
  }
  readConfig(new App({ context }).node);
}

for (const page of Object.keys(FOLLOWED_PAGES)) {
  test(`the programs accept the commands of ${page}`, () => {
    for (const { program, args } of callsOf(page)) READERS[program]?.(args);
  });
}

test("the command line accepts the commands of the chart's notes, which name its Deployments", () => {
  const notes = readFileSync(join(PROJECT_DIR, 'deploy/chart/templates/NOTES.txt'), 'utf8')
    .replaceAll(/\{\{ \.[^}]*\}\}/g, 'x')
    .replaceAll(/\{\{[^}]*\}\}/g, '');
  const commands = [...notes.matchAll(/^ +taintward (.*)$/gm)].map(([, args = '']) => args.split(/ +/));
  assert.equal(commands.length, 2);
  for (const args of commands) readTaintward(args);
  const names = [...notes.matchAll(/ deployment\/(\S+)$/gm)].map(([, name]) => name);
  const made = ['in-cluster', 'agent'].map(
    (folder) =>
      /^kind: Deployment\nmetadata:\n {2}name: (\S+)$/m.exec(
        readFileSync(join(PROJECT_DIR, 'deploy', folder, 'deployment.yaml'), 'utf8'),
      )?.[1],
  );
  assert.deepEqual(names, made);
});
