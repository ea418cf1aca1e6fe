import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { LINT_RULES } from '#shared/explain/lint.ts';
import type { ContextFleet } from '#shared/operations/fleet/fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import { plainOutput } from '#test/unit/cli/plain-output.ts';
import { type SettledCluster, settledCluster } from '#test/world/settled-cluster.ts';

const pageOf = (name: string) => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
const GUIDE = pageOf('how-to/lint-tolerations.md');
const RULES = pageOf('reference/lint-rules.md');

async function lint(args: readonly string[], fleet?: ContextFleet) {
  const { state, deps } = plainOutput();
  const live = async () => fleet ?? assert.fail('no cluster is to be asked');
  const program = createProgram({
    live,
    clock: systemClock,
    ...deps,
  } satisfies Partial<CliDeps> as unknown as CliDeps);
  await program.parseAsync(['lint', ...args], { from: 'user' });
  return state;
}

describe('taintward lint for manifests', () => {
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'manifests-'));
    mkdirSync(join(dir, 'below'));
    const manifest = (name: string, toleration: string) =>
      `kind: Pod\nmetadata: { name: ${name}, namespace: shop }\nspec:\n  containers: []\n  tolerations:\n  - ${toleration}\n`;
    writeFileSync(join(dir, 'fine.yml'), manifest('fine', '{ key: a, operator: Exists }'));
    writeFileSync(join(dir, 'below', 'typo.yaml'), manifest('typo', '{ key: a, effect: NoExcute }'));
    writeFileSync(join(dir, 'README.md'), 'no manifest: [');
  });
  after(() => rmSync(dir, { recursive: true }));

  test('prints the place and the rule of each finding, and exits with 2', async () => {
    const { printed, exitCode } = await lint(['-f', dir]);
    const file = relative('', join(dir, 'below', 'typo.yaml'));
    assert.match(printed, new RegExp(`\n${file}:6 +shop/Pod/typo +error +unknown-effect +tolerations`));
    assert.match(printed, /Checked 2 objects: 1 error\.\n$/);
    assert.equal(exitCode, 2);
  });

  test('exits with 0 without findings', async () => {
    const { printed, exitCode } = await lint(['-f', join(dir, 'fine.yml')]);
    assert.equal(printed, 'Checked 1 object: no findings.\n');
    assert.equal(exitCode, 0);
  });

  test('names the rule, the file, and the line of each result in SARIF', async () => {
    const { printed, exitCode } = await lint(['-f', dir, '-o', 'sarif']);
    const { version, runs } = JSON.parse(printed);
    assert.deepEqual([version, runs.length, exitCode], ['2.1.0', 1, 2]);
    const [{ tool, results }] = runs;
    assert.deepEqual(
      tool.driver.rules.map(({ id }: { id: string }) => id),
      Object.keys(LINT_RULES),
    );
    const [{ ruleId, ruleIndex, level, message, locations }] = results;
    assert.equal(tool.driver.rules[ruleIndex].id, ruleId);
    assert.equal(level, 'error');
    assert.match(message.text, /NoExcute.*Use NoExecute/);
    const [{ physicalLocation, logicalLocations }] = locations;
    assert.match(physicalLocation.artifactLocation.uri, /below\/typo\.yaml$/);
    assert.deepEqual(physicalLocation.region, { startLine: 6 });
    assert.equal(logicalLocations[0].fullyQualifiedName, 'shop/Pod/typo');
  });

  test('rejects missing files, and files together with a cluster', async () => {
    await assert.rejects(lint(['-f', join(dir, 'nowhere.yaml')]), /nowhere\.yaml cannot be read/);
    await assert.rejects(lint(['prod', '-f', dir]), /--file checks manifests/);
  });
});

describe('taintward lint in the simulated cluster', () => {
  let settled: SettledCluster;
  before(async () => {
    settled = await settledCluster();
  });
  after(() => settled.close());

  test('prints the example of the documentation', async () => {
    const { printed, exitCode } = await lint([], settled.fleet);
    assert.ok(GUIDE.includes(`\n${printed}\`\`\`\n`), printed);
    assert.equal(exitCode, 2);
  });

  test('has objects, and no lines, in SARIF', async () => {
    const { printed } = await lint(['-o', 'sarif'], settled.fleet);
    const [{ results }] = JSON.parse(printed).runs;
    assert.deepEqual(results[0].locations, [
      {
        logicalLocations: [
          { fullyQualifiedName: 'default/Deployment/checkout', name: 'checkout', kind: 'resource' },
        ],
      },
    ]);
  });
});

test('the documentation lists each rule with its level', () => {
  const documented = [...RULES.matchAll(/^\| `([a-z-]+)` \| (error|warning|note) \|/gm)].map(
    ([, rule, level]) => [rule, level],
  );
  assert.deepEqual(
    documented,
    Object.entries(LINT_RULES).map(([rule, { level }]) => [rule, level]),
  );
});
