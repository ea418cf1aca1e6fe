import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { freePort } from '#test/aws/server-process.ts';

const PYTHON = 'Python 3.13.0';
const JAVA = 'openjdk version "17.0.15" 2025-04-15';
const MAVEN = 'Apache Maven 3.9.9';

/** Runs `npm run localstack` with these programs, each of which prints its version and nothing else. */
function localstack(
  t: TestContext,
  programs: Readonly<Record<string, string>>,
  ...args: readonly string[]
): { readonly status: number | null; readonly err: string; readonly cache: string } {
  const folder = mkdtempSync(join(tmpdir(), 'localstack-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, version] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho '${version}'\n`, { mode: 0o755 });
  }
  const cache = join(folder, 'cache');
  const { status, stderr } = spawnSync(process.execPath, ['test/localstack/main.ts', ...args], {
    cwd: PROJECT_DIR,
    env: { PATH: folder, XDG_CACHE_HOME: cache },
    encoding: 'utf8',
  });
  return { status, err: stderr, cache };
}

describe('LocalStack on this host names a missing requirement before it installs anything:', () => {
  const cases: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
    [
      'Python',
      { java: JAVA, mvn: MAVEN },
      /needs Python 3\.13 or newer, and no python3 on the PATH is: .*PYTHON=/,
    ],
    [
      'a Python that is new enough',
      { python3: 'Python 3.12.1', java: JAVA, mvn: MAVEN },
      /needs Python 3\.13 or newer/,
    ],
    [
      'Java',
      { 'python3.13': PYTHON, mvn: MAVEN },
      /needs Java 17 or newer, for DynamoDB Local: .*JAVA_HOME=/,
    ],
    [
      'a Java that is new enough',
      { 'python3.13': PYTHON, java: 'openjdk version "11.0.2" 2019-01-15', mvn: MAVEN },
      /needs Java 17 or newer/,
    ],
    ['Maven', { 'python3.13': PYTHON, java: JAVA }, /needs Maven \(mvn\) once, to install DynamoDB Local: /],
  ];
  for (const [what, programs, sentence] of cases) {
    test(what, async (t) => {
      const { status, err, cache } = localstack(t, programs, '--port', String(await freePort()));
      assert.equal(status, 1);
      assert.match(err, sentence);
      assert.equal(err.trim().split('\n').length, 1, err);
      assert.equal(existsSync(cache), false);
    });
  }

  test('a port', async (t) => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    t.after(() => server.close());
    const { port } = server.address() as { readonly port: number };
    const { status, err } = localstack(t, {}, '--port', String(port));
    assert.deepEqual(
      [status, err],
      [1, `localstack: Port ${port} cannot be had: name another one by --port.\n`],
    );
  });

  test('an invalid port', (t) => {
    const { status, err } = localstack(t, {}, '--port', 'many');
    assert.deepEqual(
      [status, err],
      [1, 'localstack: --port must be a number from 1 to 65535, and not many.\n'],
    );
  });
});
