import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { dump } from 'js-yaml';
import pMap from 'p-map';
import * as z from 'zod';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { contextConnection } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { AdminApi } from './rig/admin-api.ts';
import { connectionTo } from './rig/test-cluster.ts';

/** The generated kubeconfigs, beside the chosen ones. */
const GENERATED = 300;
const PARALLEL = 4;
const CONTEXT = 'c';

const Review = z.object({ status: z.object({ userInfo: z.record(z.string(), z.unknown()) }) });

/** Whom the server sees, that it denies the question, or why there was no question. */
type Seen = { readonly user: object } | { readonly denied: true } | { readonly refused: string };

/**
 * What kubectl refuses, by its words, and Taintward takes: a mistake that does not change who asks whom. The line of
 * kubectl's source makes it so.
 */
const TAKEN: readonly (readonly [refusal: RegExp, source: string])[] = [
  // Kubectl decodes the whole file; here, an entry is read when a context needs it.
  [/cannot unmarshal|json: /, 'client-go/tools/clientcmd/loader.go: Load'],
  // Kubectl asks for a name and a password, and nobody answers; here, the question is sent without credentials.
  [/^error: EOF$/, 'client-go/tools/clientcmd/client_config.go: getUserIdentificationPartialConfig'],
  [/duplicate name/, 'client-go/tools/clientcmd/api/v1/conversion.go: Convert_Slice_v1_NamedCluster_To_Map'],
  [
    /are both specified for/,
    'client-go/tools/clientcmd/validation.go: validateClusterInfo, validateAuthInfo',
  ],
  [/more than one authentication method/, 'client-go/tools/clientcmd/validation.go: validateAuthInfo'],
  [
    /clientKeyData or clientKey must be specified/,
    'client-go/tools/clientcmd/validation.go: validateAuthInfo',
  ],
  [
    /interactiveMode must be specified|apiVersion must be specified/,
    'client-go/tools/clientcmd/validation.go: validateAuthInfo',
  ],
  [/root certificates file with the insecure flag/, 'client-go/transport/transport.go: TLSConfigFor'],
];

async function byKubectl(kubeconfig: string): Promise<Seen> {
  const argv = ['--kubeconfig', kubeconfig, '--context', CONTEXT, 'auth', 'whoami', '-o', 'json'];
  try {
    const running = promisify(execFile)('kubectl', argv, { timeout: 30_000 });
    // Without credentials, kubectl asks for a name and a password.
    running.child.stdin?.end();
    const { stdout } = await running;
    return { user: Review.parse(JSON.parse(stdout)).status.userInfo };
  } catch (error) {
    const message = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
    const isDenied = /Forbidden|Unauthorized|You must be logged in|forbidden/.test(message);
    return isDenied ? { denied: true } : { refused: message.trim() };
  }
}

async function byTaintward(kubeconfig: string): Promise<Seen> {
  try {
    const api = new AdminApi(contextConnection(CONTEXT, kubeconfig));
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const answer = await api.create('/apis/authentication.k8s.io/v1/selfsubjectreviews', body);
    return { user: Review.parse(answer).status.userInfo };
  } catch (error) {
    if (error instanceof ApiError && [401, 403].includes(error.status)) return { denied: true };
    assert.ok(error instanceof ApiError || error instanceof KubeconfigError, String(error));
    return { refused: error.message };
  }
}

/** A value that may be missing, and that kubectl takes as missing in several forms. */
const absent = fc.constantFrom(undefined, null, '');
const maybe = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: value }, { arbitrary: absent, weight: 2 });
const maybeList = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: value }, { arbitrary: fc.constantFrom(undefined, null, []), weight: 3 });
const maybeMap = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: value }, { arbitrary: fc.constantFrom(undefined, null, {}), weight: 3 });

/** Values of any form, for fields of entries that the context does not need. */
const odd = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<unknown>(undefined, null) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>('', 'x', 5, true, [], ['x'], {}, { x: null }) },
);

function kubeconfigs(server: object, token: string): fc.Arbitrary<string> {
  const credential = (status: object) => ({
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status,
  });
  const plugin = fc.record({
    apiVersion: fc.constant('client.authentication.k8s.io/v1'),
    command: fc.constant(process.execPath),
    args: fc
      .constantFrom(
        credential({ token }),
        credential({ token, expirationTimestamp: null, clientCertificateData: null }),
        credential({ token: null }),
        credential({}),
        { ...credential({ token }), apiVersion: 'client.authentication.k8s.io/v1beta1' },
      )
      .map((answer) => ['-e', `console.log(${JSON.stringify(JSON.stringify(answer))})`]),
    env: maybeList(
      fc.constantFrom<unknown>([{ name: 'A', value: 'b' }], [{ name: 'A', value: null }], [{ name: 'A' }]),
    ),
    interactiveMode: fc.constantFrom('Never', 'IfAvailable'),
    provideClusterInfo: fc.constantFrom(undefined, null, false, true),
    installHint: absent,
  });
  const user = fc.record({
    token: fc.oneof({ weight: 8, arbitrary: fc.constant(token) }, { weight: 1, arbitrary: absent }),
    tokenFile: fc.constantFrom(undefined, null, '', 'token', '/no/such/file'),
    'client-certificate': absent,
    'client-certificate-data': absent,
    'client-key': absent,
    'client-key-data': absent,
    username: absent,
    password: absent,
    as: maybe(fc.constantFrom('anna', 'system:serviceaccount:a:b')),
    'as-uid': maybe(fc.constant('u-1')),
    'as-groups': maybeList(fc.constantFrom(['system:masters'], ['a', 'b,c'])),
    'as-user-extra': maybeMap(
      fc.constantFrom({ 'example.com/Scope': ['x', 'y'] }, { scope: [] }, { scope: null }),
    ),
    exec: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(undefined, null) },
      { weight: 1, arbitrary: plugin },
    ),
    'auth-provider': fc.constantFrom(undefined, null),
    extensions: fc.constantFrom(undefined, null, []),
  });
  const cluster = fc
    .record({
      'certificate-authority': absent,
      'proxy-url': absent,
      'tls-server-name': absent,
      'disable-compression': fc.constantFrom(undefined, null, false, true),
      extensions: fc.constantFrom<unknown>(
        undefined,
        null,
        [],
        [{ name: 'client.authentication.k8s.io/exec', extension: { shoot: 'dev' } }],
      ),
    })
    .map((fields) => ({ ...fields, ...server }));
  const owner = fc.oneof(
    { weight: 8, arbitrary: fc.constant('c') },
    { weight: 1, arbitrary: absent },
    fc.constant('nobody'),
  );
  const context = owner.map((name) => ({ cluster: 'c', user: name, namespace: null, extensions: null }));
  const foreign = fc
    .constantFrom('server', 'proxy-url', 'token', 'exec', 'as-groups', 'extensions')
    .chain((field) => odd.map((value) => ({ [field]: value })));
  const config = fc
    .record({ user, cluster, context, foreign: maybeMap(foreign), current: maybe(fc.constantFrom('c', 'x')) })
    .map((given) => ({
      apiVersion: 'v1',
      kind: 'Config',
      preferences: null,
      extensions: null,
      'current-context': given.current,
      clusters: [
        { name: 'x', cluster: given.foreign },
        { name: 'c', cluster: given.cluster },
      ],
      users: [
        { name: 'x', user: given.foreign },
        { name: 'c', user: given.user },
      ],
      contexts: [
        { name: 'x', context: null },
        { name: 'c', context: given.context },
      ],
    }));
  const written = fc.constantFrom(
    (value: object) => JSON.stringify(value),
    (value: object) => `# a comment\n${dump(JSON.parse(JSON.stringify(value)))}`,
    (value: object) => `${dump(JSON.parse(JSON.stringify(value)))}---\n`,
    (value: object) => `---\nkind: Other\n${dump(JSON.parse(JSON.stringify(value)))}`,
    (value: object) => `shared: &s {token: t}\nother: [*s, *s]\n${dump(JSON.parse(JSON.stringify(value)))}`,
    (value: object) => `\uFEFF${JSON.stringify(value)}`,
  );
  return fc.tuple(config, written).map(([value, write]) => write(value));
}

test('whom the server sees by a kubeconfig is whom it sees by kubectl', { timeout: 300_000 }, async (t) => {
  const { server, ca, rejectUnauthorized, servername, headers } =
    await connectionTo('KUBECONFIG').requestOptions();
  const token = String(headers['Authorization']).replace(/^Bearer /, '');
  const reached = {
    server: server.href,
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(String(ca)).toString('base64') }),
    ...(rejectUnauthorized === false ? { 'insecure-skip-tls-verify': true } : {}),
    ...(servername ? { 'tls-server-name': servername } : {}),
  };
  const root = mkdtempSync(join(tmpdir(), 'taintward-kubeconfigs-'));
  t.after(() => rmSync(root, { recursive: true }));
  writeFileSync(join(root, 'token'), token);
  const texts = fc.sample(kubeconfigs(reached, token), { numRuns: GENERATED, seed: 1 });
  const counts = { same: 0, taken: 0 };
  const differences: string[] = [];
  await pMap(
    texts,
    async (text, index) => {
      const file = join(root, `config-${index}`);
      writeFileSync(file, text);
      const [theirs, ours] = await Promise.all([byKubectl(file), byTaintward(file)]);
      const isSame = 'refused' in theirs ? 'refused' in ours : isEqual(theirs, ours);
      if (isSame) counts.same += 1;
      else if ('refused' in theirs && TAKEN.some(([refusal]) => refusal.test(theirs.refused)))
        counts.taken += 1;
      else {
        const shown = text.replaceAll(token, 'TOKEN').replaceAll(/"certificate-authority-data":"[^"]*"/g, '');
        differences.push(`kubectl: ${JSON.stringify(theirs)}\nTaintward: ${JSON.stringify(ours)}\n${shown}`);
      }
    },
    { concurrency: PARALLEL },
  );
  t.diagnostic(`${counts.same} alike, ${counts.taken} that only Taintward takes`);
  assert.deepEqual(differences, []);
  assert.ok(counts.same > 0.6 * GENERATED, 'hardly any was alike');
});

function isEqual(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b);
    return true;
  } catch {
    return false;
  }
}
