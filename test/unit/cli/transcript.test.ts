import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { shapeOf, Transcript } from '#test/transcripts/transcript.ts';

const SESSION = `# A pod tolerates the taint.

$ taintward doctor
Cluster prod
  BAD    process   No npm start runs on /tmp/state: 3 pods are not evicted.
                   Start it again.
mode: enforce
[ends with 2]
`;

test('the shape of a session is without the words of its sentences', () => {
  assert.equal(
    shapeOf(SESSION),
    `# A pod tolerates the taint.

$ taintward doctor

   BAD   process   /tmp/state: 3
   
mode: enforce
[ends with 2]
`,
  );
});

/** Plays a session with this output, and compares its shape with a record; returns whether it is accepted. */
async function accepts(t: TestContext, out: string, recorded: string): Promise<boolean> {
  const dir = mkdtempSync(join(tmpdir(), 'transcript-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, 'record.txt');
  writeFileSync(path, `$ taintward doctor\n${recorded}\n`);
  const at = new Transcript({ run: async () => ({ out, err: '', code: 0 }) });
  await at.run('doctor');
  try {
    at.compareShape(t, path);
  } catch {
    return false;
  } finally {
    assert.equal(readFileSync(path, 'utf8'), `$ taintward doctor\n${recorded}\n`);
  }
  return true;
}

test('a session of another shape than its record is rejected, and other words are accepted', async (t) => {
  const line = '  ok   relay   Running since 3 days.\n';
  assert.equal(await accepts(t, line, line), true);
  assert.equal(await accepts(t, line, '  ok   relay   It has been up for 3 days by now.\n'), true);
  assert.equal(await accepts(t, line, '  ok   relay   Running since 4 days.\n'), false);
  assert.equal(await accepts(t, line, '  BAD   relay   Running since 3 days.\n'), false);
  assert.equal(await accepts(t, line, `${line}${line}`), false);
});
