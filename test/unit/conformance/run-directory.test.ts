import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CaseDirectoryError } from '#test/conformance/read-directory.ts';
import { runDirectory } from '#test/conformance/run-directory.ts';

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'taintward-conformance-'));
});
after(() => rm(root, { recursive: true }));

/** Runs files given by name and content. */
async function run(files: Readonly<Record<string, string>>) {
  const directory = await mkdtemp(join(root, 'cases-'));
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  const lines: string[] = [];
  const faults: string[] = [];
  const allPassed = await runDirectory(directory, {
    line: (text) => lines.push(text),
    fault: (sentence) => faults.push(sentence),
  });
  return { allPassed, lines, faults };
}

const file = (schema: string, cases: readonly string[]): string =>
  `{"schema":"${schema}","cases":[${cases.join()}]}`;
const taint = '{"key":"k","effect":"NoExecute"}';
const tolerated = `{"id":"tolerated","taint":${taint},"toleration":{"operator":"Exists"},"expect":true}`;
const wrong = `{"id":"wrong","taint":${taint},"toleration":{"key":"j"},"expect":true}`;

test('counts the cases that passed', async () => {
  const { allPassed, lines, faults } = await run({
    'a.json': file('tolerates/1', [tolerated]),
    'notes.txt': '',
  });
  assert.deepEqual(
    { allPassed, lines, faults },
    { allPassed: true, lines: ['1 passed, 0 failed'], faults: [] },
  );
});

test('prints the id, the expectation and the answer of a case that failed', async () => {
  const { allPassed, lines } = await run({ 'a.json': file('tolerates/1', [wrong, tolerated]) });
  assert.equal(allPassed, false);
  const expected = ['FAILED a.json wrong', '  expected true', '  got      false', '1 passed, 1 failed'];
  assert.deepEqual(lines, expected);
});

test('counts a malformed case as failed and runs the others', async () => {
  const malformed = `{"id":"malformed","taint":${taint},"toleration":[],"expect":true}`;
  const { lines } = await run({ 'a.json': file('tolerates/1', [malformed, '7', tolerated]) });
  assert.match(lines[0] ?? '', /^FAILED a\.json malformed$/);
  assert.match(lines[2] ?? '', /toleration: /);
  assert.match(lines[3] ?? '', /^FAILED a\.json cases\[1\]$/);
  assert.equal(lines.at(-1), '1 passed, 2 failed');
});

test('reads int64 exactly and writes them exactly', async () => {
  const decide = (id: string, given: string, expected: string): string =>
    `{"id":"${id}","taints":[${taint}],"tolerations":[{"operator":"Exists","tolerationSeconds":${given}}],` +
    `"expect":{"action":"evict-after","seconds":${expected}}}`;
  const cases = [
    decide('same', '9223372036854775806', '9223372036854775806'),
    decide('one-off', '9223372036854775806', '9223372036854775805'),
    decide('too-large', '9223372036854775808', '9223372036854775808'),
  ];
  const { lines } = await run({ 'a.json': file('decide/1', cases) });
  assert.equal(lines[0], 'FAILED a.json one-off');
  assert.match(lines[1] ?? '', /9223372036854775805/);
  assert.match(lines[2] ?? '', /9223372036854775806/);
  assert.equal(lines[3], 'FAILED a.json too-large');
  assert.equal(lines.at(-1), '1 passed, 2 failed');
});

test('counts the entries of normalize as cases', async () => {
  const normalize = '"normalize":[{"id":"n","preferCounts":[0,3],"expect":[100,0]}]';
  const { lines } = await run({ 'a.json': `{"schema":"schedule/1",${normalize},"cases":[]}` });
  assert.equal(lines.at(-1), '1 passed, 0 failed');
});

for (const [defect, content, sentence] of [
  ['is not JSON', '{', /^b\.json is not JSON: .+\.$/],
  ['holds no cases', '{"schema":"tolerates/1"}', /^b\.json is not a case file: cases: .+\.$/],
  [
    'has an unknown schema',
    file('tolerates/2', []),
    /^b\.json has the unknown schema "tolerates\/2": use one of .+\.$/,
  ],
] as const) {
  test(`fails with one sentence for a file that ${defect}, and runs the other files`, async () => {
    const files = { 'b.json': content, 'c.json': file('tolerates/1', [tolerated]) };
    const { allPassed, lines, faults } = await run(files);
    assert.equal(allPassed, false);
    assert.equal(faults.length, 1);
    assert.match(faults[0] ?? '', sentence);
    assert.deepEqual(lines, ['1 passed, 1 failed']);
  });
}

test('rejects a directory that is named like a case file', async () => {
  const directory = await mkdtemp(join(root, 'cases-'));
  await mkdir(join(directory, 'a.json'));
  const faults: string[] = [];
  const allPassed = await runDirectory(directory, {
    line: () => {},
    fault: (sentence) => faults.push(sentence),
  });
  assert.equal(allPassed, false);
  assert.match(faults[0] ?? '', /^a\.json cannot be read: /);
});

test('rejects a missing directory and a directory without case files', async () => {
  const output = { line: () => {}, fault: () => {} };
  await assert.rejects(runDirectory(join(root, 'missing'), output), CaseDirectoryError);
  const empty = await mkdtemp(join(root, 'empty-'));
  await assert.rejects(runDirectory(empty, output), CaseDirectoryError);
});
