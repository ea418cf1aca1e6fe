import { Console } from 'node:console';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { LogLevel, MutantResult, PartialStrykerOptions } from '@stryker-mutator/api/core';
import { Stryker } from '@stryker-mutator/core';
import { EQUIVALENT } from './equivalent.ts';
import { review, shown } from './explained.ts';
import type { NodeTestRunnerOptions } from './node-test-runner.ts';
import { ROOMS, type Room } from './rooms.ts';

const console = new Console(process.stdout, process.stderr);
const ROOT = join(import.meta.dirname, '../..');

/** Mutates a room, and runs its tests on each mutant. */
function mutate(room: Room): Promise<readonly MutantResult[]> {
  const nodeTest: NodeTestRunnerOptions = { testFiles: room.testFiles };
  const options: PartialStrykerOptions = {
    mutate: [...room.mutate],
    plugins: [new URL('./node-test-runner.ts', import.meta.url).href],
    testRunner: 'node-test',
    nodeTest,
    coverageAnalysis: 'perTest',
    // A busy machine must not kill mutants by timeouts.
    timeoutFactor: 4,
    timeoutMS: 15_000,
    // Reloaded modules stay in memory, so runners are replaced.
    maxTestRunnerReuse: 200,
    tempDirName: '.stryker-tmp',
    ignorePatterns: ['/docs/images', '/test/deployed'],
    // Node runs TypeScript without compilation.
    tsconfigFile: '',
    reporters: ['progress-append-only'],
    logLevel: 'warn' as LogLevel,
    warnings: false,
  };
  return new Stryker(options).runMutationTest();
}

/** Mutates a room, prints the results, and returns its faults. */
async function faultsOf(name: string, room: Room): Promise<readonly string[]> {
  const startedAt = performance.now();
  const mutants = await mutate(room);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const having = (...statuses: readonly MutantResult['status'][]) =>
    mutants.filter(({ status }) => statuses.includes(status));
  const [killed, timeouts] = [having('Killed').length, having('Timeout').length];
  const survived = having('Survived', 'NoCoverage');
  const others = mutants.length - killed - timeouts - survived.length;
  const score = (100 * (killed + timeouts)) / mutants.length;
  console.log(
    `${name}: ${mutants.length} mutants, ${killed} killed, ${timeouts} timed out, ${survived.length} survived, ${others} neither; ${score.toFixed(1)} %, ${seconds} s`,
  );
  const reviews = [...new Set(mutants.map(({ fileName }) => fileName))].map((fileName) => {
    const file = relative(ROOT, fileName);
    const source = readFileSync(fileName, 'utf8');
    const { unexplained, needless } = review(
      source,
      survived.filter((each) => each.fileName === fileName),
      EQUIVALENT[file] ?? [],
    );
    return {
      unexplained: unexplained.map((each) => `${file}:${shown(each, source)}`),
      needless: needless.map((each) => `${file}: ${each}`),
    };
  });
  const unexplained = reviews.flatMap((each) => each.unexplained);
  const needless = reviews.flatMap((each) => each.needless);
  const { minScore = 0 } = room;
  const isExplained = room.minScore === undefined;
  if (!isExplained && unexplained.length > 0)
    console.log(`Nobody notices these mutants of ${name}.\n\n${unexplained.join('\n\n')}`);
  return [
    ...(others > 0 ? [`${others} mutants of ${name} were neither killed nor survived.`] : []),
    ...(score < minScore ? [`The tests of ${name} notice less than ${minScore} % of the mutants.`] : []),
    ...(isExplained && unexplained.length > 0
      ? [
          `Nobody notices these mutants of ${name}: test what they break, or explain them in test/mutation/equivalent.ts.\n\n${unexplained.join('\n\n')}`,
        ]
      : []),
    ...(needless.length > 0
      ? [
          `No such mutants of ${name} survive, or fewer: correct test/mutation/equivalent.ts.\n\n${needless.join('\n')}`,
        ]
      : []),
  ];
}

const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in ROOMS));
if (unknown.length > 0) {
  console.error(`There is no room ${unknown.join(', ')}: choose of ${Object.keys(ROOMS).join(', ')}.`);
  process.exit(2);
}
for (const [name, room] of Object.entries(ROOMS)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  for (const fault of await faultsOf(name, room)) {
    console.error(`\n${fault}`);
    process.exitCode = 1;
  }
}
