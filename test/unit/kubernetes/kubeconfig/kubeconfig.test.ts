import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os, { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { contextConnection, inClusterConnection } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import { isDefaultKubeconfig, KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { loadContexts } from '#test/world/load-contexts.ts';
import { until } from '#test/world/turns.ts';

/** Creates a temporary directory that is HOME during the test and unsets KUBECONFIG and the in-cluster variables. */
function folder(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  for (const name of ['HOME', 'KUBECONFIG', 'KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT']) {
    const before = process.env[name];
    t.after(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
    delete process.env[name];
  }
  t.after(() => rmSync(root, { recursive: true }));
  process.env['HOME'] = root;
  return root;
}

function write(path: string, content: string | Buffer | object): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content),
  );
  return path;
}

/** A kubeconfig with one context, cluster, and user of the same name. */
const single = (name: string, user: object, cluster: object = {}) => ({
  'current-context': name,
  clusters: [{ name, cluster: { server: `https://${name}.example:6443`, ...cluster } }],
  users: [{ name, user }],
  contexts: [{ name, context: { cluster: name, user: name } }],
});

const only = (kubeconfig: string) => {
  const [context] = loadContexts({ kubeconfig, contexts: [] });
  assert.ok(context);
  return context.connection;
};

/** Loads the context of a kubeconfig in a folder, with this user and cluster. */
const connected = (root: string, user: object, cluster: object = {}) =>
  only(write(join(root, 'config'), single('a', user, cluster)));

/** Expires in 2286. */
const ID_TOKEN = `${btoa('{}')}.${btoa('{"exp":9999999999}')}.signature`;

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

/** A user with a token, and no value in any other field. */
const NULLS = {
  'client-certificate': null,
  'client-key': null,
  tokenFile: null,
  exec: null,
  as: null,
  'as-uid': null,
  username: null,
  'auth-provider': null,
  'client-certificate-data': '',
  password: '',
  token: 'x',
  'as-groups': [],
  'as-user-extra': {},
};

const refusal =
  (...messages: readonly RegExp[]) =>
  (error: unknown) => {
    assert.ok(error instanceof KubeconfigError, String(error));
    for (const message of messages) assert.match(error.message, message);
    assert.doesNotMatch(error.message, /sesame/);
    assert.equal(error.message.trim().split('\n').length, 1);
    return true;
  };

/** A user whose `exec` credentials plugin runs this JavaScript. */
const plugin = (script: string) => ({
  exec: {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: process.execPath,
    args: ['-e', script],
    env: null,
  },
});

/** A user whose plugin notes its request in a file, in a line each, and prints this JavaScript value. */
const logging = (log: string, answer: string) =>
  plugin(`const info = process.env.KUBERNETES_EXEC_INFO;
    require('node:fs').appendFileSync(${JSON.stringify(log)}, info + '\\n');
    const { apiVersion, spec } = JSON.parse(info);
    console.log(JSON.stringify(${answer}));`);
const runs = (log: string) => readFileSync(log, 'utf8').trim().split('\n').length;

test('loads contexts in the order of their names, each with its own server and credentials', async (t) => {
  const kubeconfig = write(join(folder(t), 'config'), {
    clusters: ['a', 'b'].map((name) => ({ name, cluster: { server: `https://${name}.example` } })),
    users: ['a', 'b'].map((name) => ({ name, user: { token: `token-${name}` } })),
    contexts: ['a', 'b'].map((name) => ({ name, context: { cluster: name, user: name } })),
  });
  const contexts = loadContexts({ kubeconfig, contexts: ['b', 'a'] });
  const given = await Promise.all(contexts.map(({ connection }) => connection.requestOptions()));
  assert.deepEqual(
    contexts.map(({ name }, index) => [name, given[index]?.server.href, given[index]?.headers]),
    [
      ['b', 'https://b.example/', { Authorization: 'Bearer token-b' }],
      ['a', 'https://a.example/', { Authorization: 'Bearer token-a' }],
    ],
  );
});

test('loads the current context of ~/.kube/config by default', async (t) => {
  write(join(folder(t), '.kube', 'config'), single('home', { token: 'x' }));
  assert.deepEqual(
    loadContexts({ contexts: [] }).map(({ name }) => name),
    ['home'],
  );
});

test('merges the files of KUBECONFIG, first value wins, and skips missing files', async (t) => {
  const root = folder(t);
  const first = write(join(root, 'first'), single('a', { token: 'first' }));
  const second = write(join(root, 'second'), {
    ...single('a', { token: 'second' }),
    'current-context': 'b',
    contexts: [{ name: 'b', context: { cluster: 'a', user: 'a' } }],
  });
  process.env['KUBECONFIG'] = [join(root, 'missing'), first, second].join(delimiter);
  const [current, b] = [loadContexts({ contexts: [] })[0], loadContexts({ contexts: ['b'] })[0]];
  assert.equal(current?.name, 'a');
  assert.equal((await b?.connection.requestOptions())?.headers['Authorization'], 'Bearer first');
});

test("reads certificates relative to the kubeconfig's directory", async (t) => {
  const root = folder(t);
  for (const file of ['ca', 'cert', 'key']) write(join(root, 'pki', file), `${file} in PEM`);
  const user = { 'client-certificate': 'pki/cert', 'client-key': 'pki/key' };
  const cluster = { 'certificate-authority': 'pki/ca', 'tls-server-name': 'inner.example' };
  const { ca, cert, key, servername } = await connected(root, user, cluster).requestOptions();
  assert.deepEqual([ca, cert, key].map(String), ['ca in PEM', 'cert in PEM', 'key in PEM']);
  assert.equal(servername, 'inner.example');
});

for (const [what, user, cluster, access] of [
  ['verifies TLS by default', { token: 'x' }, {}, { headers: bearer('x') }],
  [
    'disables TLS verification only if the kubeconfig does',
    { token: 'x' },
    { 'insecure-skip-tls-verify': true },
    { headers: bearer('x'), rejectUnauthorized: false },
  ],
  [
    'uses the proxy of the cluster',
    { token: 'x' },
    { 'proxy-url': 'http://proxy.example:3128' },
    { headers: bearer('x'), proxy: new URL('http://proxy.example:3128') },
  ],
  [
    'sends user name and password as basic authentication and `as` as impersonation',
    { username: 'ali', password: 'baba', as: 'thief' },
    {},
    { headers: { Authorization: `Basic ${btoa('ali:baba')}`, 'Impersonate-User': 'thief' } },
  ],
  [
    'uses the token of an identity provider',
    {
      'auth-provider': { name: 'gcp', config: { 'access-token': 'given', expiry: '2999-01-01T00:00:00Z' } },
      as: 'thief',
    },
    { 'tls-server-name': 'other' },
    { headers: { ...bearer('given'), 'Impersonate-User': 'thief' }, servername: 'other' },
  ],
  [
    'uses the ID token of an OpenID Connect provider',
    { 'auth-provider': { name: 'oidc', config: { 'id-token': ID_TOKEN } } },
    {},
    { headers: bearer(ID_TOKEN) },
  ],
  [
    "prefers a kubeconfig's own token to its plugin's",
    { exec: { command: 'no-such-plugin' }, token: 'own' },
    {},
    { headers: bearer('own') },
  ],
  [
    "impersonates with a plugin's token",
    { ...plugin('console.log(\'{"status":{"token":"asked"}}\')'), as: 'anna', 'as-groups': ['c'] },
    {},
    { headers: { ...bearer('asked'), 'Impersonate-User': 'anna', 'Impersonate-Group': ['c'] } },
  ],
  [
    'impersonates a user with a UID, groups, and extra fields',
    {
      token: 'x',
      as: 'anna',
      'as-uid': 'u-1',
      'as-groups': ['a,b', 'c'],
      'as-user-extra': { 'example.com/Scope': ['s1', 's2'], none: [] },
    },
    {},
    {
      headers: {
        ...bearer('x'),
        'Impersonate-User': 'anna',
        'Impersonate-Uid': 'u-1',
        'Impersonate-Group': ['a,b', 'c'],
        'Impersonate-Extra-example.com%2FScope': ['s1', 's2'],
        'Impersonate-Extra-none': [],
      },
    },
  ],
] as const)
  test(what, async (t) => {
    const { server: _, ...given } = await connected(folder(t), user, cluster).requestOptions();
    assert.deepEqual(given, access);
  });

test('accepts a plain http server for users without a secret', async (t) => {
  const root = folder(t);
  const cluster = { server: 'http://127.0.0.1:8001' };
  assert.deepEqual((await connected(root, {}, cluster).requestOptions()).headers, {});
  for (const [secret, user] of Object.entries({
    token: { token: 'sesame' },
    tokenFile: { tokenFile: 'sesame' },
    exec: { exec: { command: 'sesame' } },
    username: { username: 'ali', password: 'sesame' },
    'auth-provider': { 'auth-provider': { name: 'oidc', config: {} } },
  })) {
    const message = `^The server of context "a" is plain http \\(127.0.0.1:8001\\), which would show its user's ${secret} to anybody on the way: write it as https://127.0.0.1:8001.$`;
    assert.throws(() => connected(root, user, cluster), refusal(new RegExp(message)));
  }
});

test('rereads a token file as it rotates', async (t) => {
  const root = folder(t);
  write(join(root, 'token'), 'one\n');
  const connection = connected(root, { token: 'fallback', tokenFile: 'token' });
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  assert.equal((await connection.requestOptions()).headers['Authorization'], 'Bearer one');
  write(join(root, 'token'), 'two\n');
  t.mock.timers.tick(61_000);
  assert.equal((await connection.requestOptions()).headers['Authorization'], 'Bearer two');
});

test('runs a credentials plugin once for concurrent callers, and again after its token was rejected', async (t) => {
  const root = folder(t);
  const log = join(root, 'runs');
  const answer = "{ apiVersion, status: { token: 'asked:' + spec.interactive } }";
  const connection = connected(root, logging(log, answer));
  const listeners = process.listenerCount('exit');
  const access = await Promise.all([1, 2, 3].map(() => connection.requestOptions()));
  assert.equal(access[2]?.headers['Authorization'], 'Bearer asked:false');
  await connection.requestOptions();
  assert.equal(runs(log), 1);
  connection.forgetCredentials?.();
  await connection.requestOptions();
  assert.equal(runs(log), 2);
  assert.equal(process.listenerCount('exit'), listeners);
});

test('rereads the kubeconfig after a rejection', async (t) => {
  const path = join(folder(t), 'config');
  const connection = only(write(path, single('a', { token: 'old' })));
  write(path, single('a', { token: 'new' }));
  assert.equal((await connection.requestOptions()).headers['Authorization'], 'Bearer old');
  connection.forgetCredentials?.();
  assert.equal((await connection.requestOptions()).headers['Authorization'], 'Bearer new');
  rmSync(path);
  connection.forgetCredentials?.();
  await assert.rejects(connection.requestOptions(), refusal(/cannot be read \(ENOENT\)/));
});

const answering = (answer: object) => plugin(`console.log(${JSON.stringify(JSON.stringify(answer))})`);

test('tells a plugin of its cluster if it wants that, and takes nulls in its answer', async (t) => {
  const root = folder(t);
  const seen = join(root, 'seen');
  const answer = {
    status: { token: 'x', clientCertificateData: null, clientKeyData: null, expirationTimestamp: null },
  };
  const { exec } = logging(seen, JSON.stringify(answer));
  write(join(root, 'ca'), 'PEM');
  const cluster = {
    'certificate-authority': 'ca',
    'tls-server-name': 'inner',
    'insecure-skip-tls-verify': false,
    extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { shoot: 'dev' } }],
  };
  const user = { exec: { ...exec, provideClusterInfo: true } };
  const connection = connected(root, user, cluster);
  assert.deepEqual((await connection.requestOptions()).headers, { Authorization: 'Bearer x' });
  assert.deepEqual(JSON.parse(readFileSync(seen, 'utf8')), {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      cluster: {
        server: 'https://a.example:6443',
        'tls-server-name': 'inner',
        'certificate-authority-data': Buffer.from('PEM').toString('base64'),
        config: { shoot: 'dev' },
      },
    },
  });
});

test('names a plugin that fails, prints no credentials, or is missing, without quoting its output', async (t) => {
  const root = folder(t);
  for (const [user, message] of [
    [plugin('console.error("sesame"); process.exit(1)'), /"a" failed: run "kubectl get nodes"/],
    [plugin('console.log("sesame")'), /printed no credential: its output is wrong at its top: /],
    [answering({ token: 'sesame' }), /credential: its output is wrong at status: is missing\.$/],
    [
      answering({ status: { token: 'sesame', expirationTimestamp: 'soon' } }),
      /credential: its output is wrong at status\.expirationTimestamp: /,
    ],
    [answering({ status: { token: null } }), /its status has neither a token nor a certificate/],
    [
      answering({ status: { token: 'sesame', clientKeyData: 'sesame' } }),
      /its status has only one of clientCertificateData and clientKeyData/,
    ],
    [
      answering({ apiVersion: 'client.authentication.k8s.io/v1beta1', status: { token: 'sesame' } }),
      /its apiVersion is not client\.authentication\.k8s\.io\/v1, /,
    ],
    [
      { exec: { command: 'no-such-plugin', interactiveMode: 'Always' } },
      /it asks a person \(interactiveMode: Always\), and nobody is there/,
    ],
    [
      { exec: { command: 'no-such-plugin', installHint: 'See example.com.' } },
      /plugin no-such-plugin of .* started \(ENOENT\): install it, or put it on PATH\. See example\.com\.$/,
    ],
  ] as const) {
    const named = /^The credentials plugin .*of context "a" /;
    await assert.rejects(connected(root, user).requestOptions(), refusal(named, message));
  }
});

test("a plugin has this process's variables, but those of its kubeconfig before them", async (t) => {
  const root = folder(t);
  process.env['KUBERNETES_SERVICE_HOST'] = 'process';
  const { exec } = plugin(`const { KUBERNETES_SERVICE_HOST, HOME } = process.env;
    console.log(JSON.stringify({ status: { token: KUBERNETES_SERVICE_HOST + ',' + HOME } }));`);
  const env = [{ name: 'HOME', value: 'kubeconfig' }];
  const { headers } = await connected(root, { exec: { ...exec, env } }).requestOptions();
  assert.deepEqual(headers, bearer('process,kubeconfig'));
});

test("uses a plugin's token, or certificate and key, until they expire", async (t) => {
  const root = folder(t);
  const log = join(root, 'runs');
  const now = Date.now();
  t.mock.timers.enable({ apis: ['Date'], now });
  const status = {
    token: 'sesame',
    clientCertificateData: 'cert in PEM',
    clientKeyData: 'key in PEM',
    expirationTimestamp: new Date(now + 60_000).toISOString(),
  };
  const connection = connected(root, logging(log, JSON.stringify({ status })));
  const { headers: given, cert, key } = await connection.requestOptions();
  assert.deepEqual([given, cert, key], [{ Authorization: 'Bearer sesame' }, 'cert in PEM', 'key in PEM']);
  t.mock.timers.tick(59_000);
  await connection.requestOptions();
  assert.equal(runs(log), 1);
  t.mock.timers.tick(1_000);
  await connection.requestOptions();
  assert.equal(runs(log), 2);
});

test('kills a hanging plugin with its children and starts a new one at the next attempt', {
  timeout: 10_000,
  skip: !existsSync('/proc/self/status') && 'there is no /proc to see it by',
}, async (t) => {
  const root = folder(t);
  const [first, pid] = [join(root, 'first'), join(root, 'pid')];
  const answer = JSON.stringify({ status: { token: 'sesame' } });
  // The plugin's child holds the pipe for the plugin's output.
  const shell = `if [ ! -e ${first} ]; then touch ${first}; sleep 100 & echo $! >${pid}; wait; fi; echo '${answer}'`;
  const user = { exec: { command: '/bin/sh', args: ['-c', shell] } };
  const connection = connected(root, user);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const hung = connection.requestOptions();
  const text = () => readFileSync(pid, { encoding: 'utf8', flag: 'a+' });
  await until(() => text().endsWith('\n'));
  const isRunning = () => {
    try {
      return !/^State:\s+Z/m.test(readFileSync(`/proc/${text().trim()}/status`, 'utf8'));
    } catch {
      return false;
    }
  };
  assert.ok(isRunning());
  t.mock.timers.tick(30_000);
  await assert.rejects(hung, refusal(/no credentials came within 30s/));
  assert.equal((await connection.requestOptions()).headers['Authorization'], 'Bearer sesame');
  await until(() => !isRunning());
});

test("uses the pod's service account inside a cluster", async (t) => {
  const root = folder(t);
  assert.throws(() => inClusterConnection(root), refusal(/does not run in a Kubernetes pod/));
  process.env['KUBERNETES_SERVICE_HOST'] = 'fd00::1';
  process.env['KUBERNETES_SERVICE_PORT'] = '443';
  const account = join(root, 'var/run/secrets/kubernetes.io/serviceaccount');
  assert.throws(() => inClusterConnection(root), refusal(/serviceaccount\/ca.crt .* cannot be read/));
  write(join(account, 'ca.crt'), 'ca in PEM');
  write(join(account, 'token'), 'pod-token');
  const connection = inClusterConnection(root);
  const { server, headers: given, ca } = await connection.requestOptions();
  assert.equal(server.href, 'https://[fd00::1]/');
  assert.deepEqual(given, { Authorization: 'Bearer pod-token' });
  assert.equal(String(ca), 'ca in PEM');
});

for (const [what, kubeconfig, message] of [
  ['is not YAML', 'users: [{ token: sesame\n}', /^The kubeconfig .* is not YAML \(line 2\): correct/],
  ['is something else', 'sesame', /is wrong at its top: /],
  [
    'has a token of another type',
    single('a', { token: 5 }),
    /^The user "a" of the kubeconfig .* is wrong at token: /,
  ],
  ['has no current context', { contexts: null }, /has no current context: name the contexts/],
  [
    'names a cluster that is not there',
    { ...single('a', {}), clusters: [] },
    /^Context "a" of the kubeconfig .* names the cluster "a", which is not there: correct/,
  ],
  [
    'has a server that is no URL',
    single('a', {}, { server: 'sesame:6443' }),
    /write it as https:\/\/HOST:PORT/,
  ],
  ['has no server', { ...single('a', {}), clusters: [{ name: 'a', cluster: {} }] }, /write it as https:/],
  [
    'lacks its CA file',
    single('a', {}, { 'certificate-authority': 'ca.pem' }),
    /^The file .*ca\.pem of context "a" cannot be read \(ENOENT\): restore it/,
  ],
  ['lacks its token file', single('a', { tokenFile: '/no/such' }), /The file \/no\/such of context "a"/],
  [
    'goes by a proxy of another kind',
    single('a', {}, { 'proxy-url': 'socks5://sesame@proxy' }),
    /^The proxy-url of context "a" is not an http or https URL: write it as http:\/\/HOST:PORT\.$/,
  ],
  [
    'impersonates groups alone',
    single('a', { 'as-groups': ['y'] }),
    /^The user impersonates .* set "as", too\.$/,
  ],
] as const) {
  test(`rejects a kubeconfig that ${what} in one sentence`, (t) => {
    const path = write(join(folder(t), 'config'), kubeconfig);
    assert.throws(() => only(path), refusal(message));
  });
}

test('rejects an unknown context, quotes it on one line, and lists the existing contexts', (t) => {
  const kubeconfig = write(join(folder(t), 'config'), single('a', {}));
  const load = (context: string) => loadContexts({ kubeconfig, contexts: [context] });
  assert.throws(() => load('prod'), refusal(/has no context "prod": it has a\.$/));
  assert.throws(
    () => load(`b\n${'c'.repeat(5_000)}`),
    ({ message }: Error) => !message.includes('\n') && message.length < 1_100,
  );
});

test('rejects a missing kubeconfig', (t) => {
  const root = folder(t);
  const missing = join(root, 'missing');
  const unread = refusal(/^The kubeconfig .*missing cannot be read \(ENOENT\): check its path/);
  assert.throws(() => only(missing), unread);
  const load = () => loadContexts({ contexts: [] });
  assert.throws(load, refusal(/^Kubeconfig not found at .*\.kube\/config\. /));
  process.env['KUBECONFIG'] = missing;
  assert.throws(load, refusal(/^Kubeconfig not found at .*missing\. /));
});

test('names the fix to a user without a home directory, and needs none otherwise', (t) => {
  const kubeconfig = write(join(folder(t), 'config'), single('a', {}));
  const noHome = t.mock.fn(() => {
    throw new Error('A system error occurred: uv_os_homedir returned ENOENT (no such file or directory)');
  });
  t.mock.method(os, 'homedir', noHome);
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assert.throws(
    () => loadContexts({ contexts: [] }),
    refusal(
      /^Kubeconfig not found: this user has no home directory\. Specify --kubeconfig FILE, or set KUBECONFIG\.$/,
    ),
  );
  assert.equal(loadContexts({ kubeconfig, contexts: ['a'] }).length, 1);
  assert.equal(isDefaultKubeconfig(kubeconfig), false);
  assert.ok(noHome.mock.callCount() > 0);
});

const fine = { ...single('a', { token: 'x' }), 'current-context': 'a' };
const odd = (name: string, user: unknown, cluster: unknown = null) => ({
  ...fine,
  users: [...fine.users, { name, user }],
  clusters: [...fine.clusters, { name, cluster }, null, { cluster: 5 }],
});
const YAML = `contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://a.example:6443"}}]
`;
const utf16 = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le');

for (const [what, content] of [
  ['with a foreign entry of another form', odd('b', { token: 5, exec: [] }, { server: 5, 'proxy-url': {} })],
  ['with nulls and empty values in each field', single('a', NULLS, { 'proxy-url': null, extensions: null })],
  [
    'with a second document and keys twice',
    `${YAML}users: [{name: a, user: {token: y, token: x}}]\ncurrent-context: b\ncurrent-context: a\n---\n`,
  ],
  ['with anchors', `user: &u {token: x}\nself: &s [*s]\n${YAML}users: [{name: a, user: *u}]\n`],
  ['in UTF-16, little endian', utf16(JSON.stringify(fine))],
  ['in UTF-16, big endian', utf16(JSON.stringify(fine)).swap16()],
  ['with a token besides a missing token file', single('a', { token: 'x', tokenFile: '/no/such' })],
] as const) {
  test(`reads a kubeconfig ${what} as kubectl does`, async (t) => {
    const connection = contextConnection('a', write(join(folder(t), 'config'), content));
    assert.deepEqual((await connection.requestOptions()).headers, bearer('x'));
  });
}

for (const content of ['', ' \n', '# only a comment', 'null', '---']) {
  test(`skips a file of KUBECONFIG that holds ${JSON.stringify(content)}`, async (t) => {
    const root = folder(t);
    const files = [write(join(root, 'empty'), content), write(join(root, 'config'), fine)];
    process.env['KUBECONFIG'] = files.join(delimiter);
    assert.equal(loadContexts({ contexts: [] })[0]?.name, 'a');
  });
}

test('has no credentials in a context without a user, or whose user is missing', async (t) => {
  const path = join(folder(t), 'config');
  for (const user of [undefined, null, '', 'nobody']) {
    write(path, { ...fine, contexts: [{ name: 'a', context: { cluster: 'a', user } }] });
    assert.deepEqual((await only(path).requestOptions()).headers, {});
  }
});

test('accepts a context without a name', async (t) => {
  const kubeconfig = write(join(folder(t), 'config'), single('', { token: 'x' }, { server: 'https://a' }));
  const { headers } = await contextConnection('', kubeconfig).requestOptions();
  assert.equal(headers['Authorization'], 'Bearer x');
});
