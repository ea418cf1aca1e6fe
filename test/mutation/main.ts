import { Console } from 'node:console';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { LogLevel, MutantResult, PartialStrykerOptions } from '@stryker-mutator/api/core';
import { Stryker } from '@stryker-mutator/core';
import { type Explained, explainable, type Mutation, mutationOf, readExplained } from './explained.ts';
import type { NodeTestRunnerOptions } from './node-test-runner.ts';
import { ROOMS, type Room } from './rooms.ts';

const console = new Console(process.stdout, process.stderr);
const ROOT = join(import.meta.dirname, '../..');
const PAGE = 'docs/mutants.md';

/** Of a room's mutants its tests must notice so many, in percent. */
const LEAST_SCORE = 95;

/** Mutates a room, and runs its tests on each mutant. */
function mutate(room: Room): Promise<readonly MutantResult[]> {
  const nodeTest: NodeTestRunnerOptions = { testFiles: room.testFiles };
  const options: PartialStrykerOptions = {
    mutate: [...room.mutate],
    plugins: [new URL('./node-test-runner.ts', import.meta.url).href],
    testRunner: 'node-test',
    nodeTest,
    coverageAnalysis: 'perTest',
    // A busy machine kills no mutant.
    timeoutFactor: 4,
    // Modules that were loaded anew stay in memory.
    maxTestRunnerReuse: 200,
    tempDirName: '.stryker-tmp',
    ignorePatterns: ['/docs/images', '/test/deployed'],
    // Node runs TypeScript as it is.
    tsconfigFile: '',
    reporters: ['progress-append-only'],
    logLevel: 'warn' as LogLevel,
    warnings: false,
  };
  return new Stryker(options).runMutationTest();
}

const keyOf = ({ file, before, after }: Mutation): string => [file, before, after].join('\n');

/** Mutates a room, tells what came of it, and returns what is wrong with that. */
async function review(name: string, room: Room, explained: readonly Explained[]): Promise<readonly string[]> {
  const startedAt = performance.now();
  const mutants = await mutate(room);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const sources = new Map<string, string>();
  const mutations = mutants.map(({ status, fileName, ...mutant }) => {
    const file = relative(ROOT, fileName);
    const source = sources.get(file) ?? readFileSync(fileName, 'utf8');
    sources.set(file, source);
    return { status, mutation: mutationOf(mutant, file, source) };
  });
  const having = (...statuses: readonly MutantResult['status'][]) =>
    mutations.filter(({ status }) => statuses.includes(status)).map(({ mutation }) => mutation);
  const [killed, timeouts, survivors] = [
    having('Killed'),
    having('Timeout'),
    having('Survived', 'NoCoverage'),
  ];
  const others = mutants.length - killed.length - timeouts.length - survivors.length;
  const score = (100 * (killed.length + timeouts.length)) / mutants.length;
  console.log(
    `${name}: ${mutants.length} mutants, ${killed.length} killed, ${timeouts.length} timed out, ${survivors.length} survived, ${others} neither; ${score.toFixed(1)} %, ${seconds} s`,
  );
  const known = new Set(explained.map(keyOf));
  const surviving = new Set(survivors.map(keyOf));
  const unexplained = survivors.filter((each) => !known.has(keyOf(each)));
  const needless = explained.filter((each) => sources.has(each.file) && !surviving.has(keyOf(each)));
  return [
    ...(others > 0 ? [`${others} mutants of ${name} were neither killed nor survived.`] : []),
    ...(score < LEAST_SCORE
      ? [`The tests of ${name} notice less than ${LEAST_SCORE} % of the mutants.`]
      : []),
    ...(unexplained.length > 0
      ? [
          `Nobody notices these mutants of ${name}: test what they break, or explain them in ${PAGE}.\n\n${explainable(unexplained)}`,
        ]
      : []),
    ...(needless.length > 0
      ? [`No such mutant of ${name} survives: take these out of ${PAGE}.\n\n${explainable(needless)}`]
      : []),
  ];
}

const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in ROOMS));
if (unknown.length > 0) {
  console.error(`There is no room ${unknown.join(', ')}: choose of ${Object.keys(ROOMS).join(', ')}.`);
  process.exit(2);
}
const explained = readExplained(readFileSync(join(ROOT, PAGE), 'utf8'));
for (const [name, room] of Object.entries(ROOMS)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  for (const fault of await review(name, room, explained)) {
    console.error(`\n${fault}`);
    process.exitCode = 1;
  }
}
