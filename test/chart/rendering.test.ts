import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { diff } from 'node:util';
import { load } from 'js-yaml';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import { VERSION } from '#shared/version.ts';
import { HelmError, lintChart, NAMESPACE, renderChart, type Values } from '../../deploy/helm.ts';
import { FOLDERS, manifests } from '../../deploy/manifests.ts';
import { kubectl } from './kubectl.ts';
import { objectsOf } from './objects.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const valuesOf = (file: string): Values =>
  fieldsOf(load(readFileSync(join(import.meta.dirname, 'values', `${file}.yaml`), 'utf8')));
const AGENT = valuesOf('agent');

/** The default values of each folder. Kustomize's inputs for them are on record. */
const DEFAULTS: Readonly<Record<string, Values>> = { 'in-cluster': {}, agent: AGENT };
/** By the folder, the name of the values file in which every value differs from the folder's. */
const WITH_ALL: Readonly<Record<string, string>> = {
  'in-cluster': 'service-with-all',
  agent: 'agent-with-all',
};

test('helm lint has no complaints', () => {
  for (const values of [...Object.values(DEFAULTS), ...Object.values(WITH_ALL).map(valuesOf)]) {
    assert.match(lintChart(values), /0 chart\(s\) failed/);
  }
});

/** Returns the text of each object, by kind and name; the release is the same in all of them. */
function rendered(values: Values): ReadonlyMap<string, string> {
  const texts = renderChart(values)
    .replaceAll(`:${VERSION}`, ':<release>')
    .split(/^---\n/m);
  return new Map(
    texts.flatMap((text) => [...objectsOf(text).keys()].map((name) => [name, text.trim()] as const)),
  );
}

/** Returns the lines that other values remove (`-`) and add (`+`), by object. */
function changes(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string {
  const lines = (text = '') => (text === '' ? [] : text.split('\n'));
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names]
    .flatMap((name) => {
      const found = diff(lines(after.get(name)), lines(before.get(name)));
      const changed = found.filter(([operation]) => operation !== 0);
      const texts = changed.map(([operation, line]) => `${operation === 1 ? '+' : '-'}${line}`);
      return texts.length === 0 ? [] : [name, ...texts];
    })
    .join('\n');
}

for (const [folder, name] of Object.entries(WITH_ALL)) {
  test(`the changes of deploy/${folder} with other values are on record: ${name}`, (t) => {
    const changed = changes(rendered(FOLDERS[folder] ?? {}), rendered(valuesOf(name)));
    t.assert.fileSnapshot(`${changed}\n`, join(import.meta.dirname, 'golden', `${name}.diff`), {
      serializers: [String],
    });
  });
}

/** The image's digest counts, not its tag, and a mode is what it is by default. */
const WITHOUT_EFFECT: Readonly<Record<string, readonly string[]>> = {
  'service-with-all': ['mode', 'image.tag'],
};

/** Those that the others require. */
const REQUIRED = /^(agent\.(region|account|cluster|id)|admissionPolicy\.enabled)$/;

/** Returns the paths of values; a list is one value. */
const pathsOf = (values: unknown, path: readonly string[] = []): readonly (readonly string[])[] =>
  values !== null && typeof values === 'object' && !Array.isArray(values)
    ? Object.entries(values).flatMap(([name, below]) => pathsOf(below, [...path, name]))
    : [path];

const scalarsIn = (value: unknown): readonly unknown[] =>
  value !== null && typeof value === 'object' ? Object.values(value).flatMap(scalarsIn) : [value];

/** Returns these values without one, and that one. */
function without(
  values: unknown,
  [name = '', ...below]: readonly string[],
): { rest: Values; value: unknown } {
  const { [name]: inner, ...others } = fieldsOf(values);
  if (below.length === 0) return { rest: others, value: inner };
  const { rest, value } = without(inner, below);
  return { rest: { ...others, [name]: rest }, value };
}

for (const name of Object.values(WITH_ALL)) {
  const values = valuesOf(name);
  test(`each value is rendered as given, and changes what is rendered: ${name}`, () => {
    const all = rendered(values);
    for (const path of pathsOf(values)) {
      const { rest, value } = without(values, path);
      const text = path.join('.');
      const isRequired = REQUIRED.test(text);
      if (isRequired) assert.throws(() => rendered(rest), HelmError, text);
      const changed = changes(isRequired ? new Map() : rendered(rest), all);
      assert.equal(changed !== '', !WITHOUT_EFFECT[name]?.includes(text), text);
      const given = changed === '' ? [] : scalarsIn(value).filter((each) => typeof each !== 'boolean');
      for (const line of given.flatMap((each) => `${each}`.trim().split('\n')))
        assert.ok(changed.includes(line), `${text}: ${line}`);
    }
  });
}

const DIGEST = `sha256:${'0'.repeat(64)}`;
const agentWith = (settings: Values): Values => ({
  ...AGENT,
  agent: { ...fieldsOf(AGENT['agent']), ...settings },
});
const NO_QUOTA = /^(?![\s\S]*kind: ResourceQuota)/;
/** Values in each of their forms, and what is rendered of them. */
const FORMS: readonly (readonly [Values, RegExp])[] = [
  [
    { image: { repository: 'localhost:5000/r', tag: '1.10-rc.1' } },
    / image: localhost:5000\/r:1\.10-rc\.1\n/,
  ],
  [{ image: { digest: DIGEST } }, / image: ghcr\.io\/taintward\/taintward@sha256:0{64}\n/],
  [{ image: { tag: 'v9', digest: DIGEST } }, / image: ghcr\.io\/taintward\/taintward@sha256:0{64}\n/],
  [{ resources: { limits: { cpu: 0.5, memory: 2 ** 29 } } }, / cpu: 0\.5\n +memory: 536870912\n/],
  [{ priorityClassName: 'true' }, / priorityClassName: "true"\n/],
  [{ priorityClassName: 'mine' }, NO_QUOTA],
  [{ priorityClassName: 'system-node-critical' }, / values: \["system-node-critical"\]\n/],
  [
    {
      tolerations: [
        { key: 'a', operator: 'Gt', value: '5', effect: 'PreferNoSchedule', tolerationSeconds: 1e7 },
      ],
    },
    /- effect: PreferNoSchedule\n +key: a\n +operator: Gt\n +tolerationSeconds: 10000000\n +value: "5"\n/,
  ],
  [{ networkPolicy: { metricsFrom: [] } }, / ingress: \[\]\n/],
  [
    { networkPolicy: { metricsFrom: [{ ipBlock: { cidr: '::/0' } }] } },
    / from:\n +- ipBlock:\n +cidr: ::\/0\n/,
  ],
  [
    { service: { policy: '  # Why.\n  mode: enforce\n' } },
    / policy\.yaml: \|2\n {6}# Why\.\n {6}mode: enforce\n/,
  ],
  [agentWith({ installation: 'true' }), /: SERVICE\n +value: "true"\n/],
  [agentWith({ installation: 'a'.repeat(31) }), /: SERVICE\n +value: "a{31}"\n/],
  [agentWith({ id: 'true' }), /: AGENT\n +value: "true"\n/],
  [agentWith({ account: '012345678901' }), /: ACCOUNT\n +value: "012345678901"\n/],
  [
    agentWith({ cluster: 'arn:aws:eks:eu-west-1:1:cluster/Prod_1' }),
    / "arn:aws:eks:eu-west-1:1:cluster\/Prod_1"\n/,
  ],
  [agentWith({ region: 'ap-southeast-2' }), /^(?![\s\S]*(arn:aws-|\.cn\/))/],
  [agentWith({ region: 'us-gov-west-1' }), /^(?![\s\S]*(arn:aws:|\.cn\/))[\s\S]*arn:aws-us-gov:/],
  [agentWith({ region: 'cn-north-1' }), /^(?![\s\S]*(arn:aws:|\.com\/))[\s\S]*arn:aws-cn:/],
  [
    agentWith({ roleArn: 'arn:aws-cn:iam::012345678901:role/a' }),
    /eks\.amazonaws\.com\/role-arn: arn:aws-cn:/,
  ],
];
for (const [values, text] of FORMS)
  test(`the chart renders ${JSON.stringify(values)}`, () => assert.match(renderChart(values), text));

const REFUSED: Readonly<Record<string, readonly [Values, RegExp]>> = {
  'a value that there is not': [{ replicaCount: 3 }, /'replicaCount' not allowed/],
  'one below another': [{ image: { sha: 'x' } }, /'\/image'.*'sha' not allowed/],
  'a mode that there is not': [{ mode: 'relay' }, /'\/mode'.*'service', 'agent'/],
  'no replica at all': [{ replicas: 0 }, /'\/replicas'.*minimum/],
  'a repository with a digest': [{ image: { repository: `r@${DIGEST}` } }, /'\/image\/repository'/],
  'a digest that is none': [{ image: { digest: 'sha256:0' } }, /'\/image\/digest'/],
  'history for ever': [{ historyDays: 0 }, /'\/historyDays'/],
  'an address without its range': [
    { networkPolicy: { apiServer: { cidrs: ['10.0.0.5'] } } },
    /'\/networkPolicy\/apiServer\/cidrs\/0'/,
  ],
  'a toleration with a typo': [{ tolerations: [{ keys: 'x' }] }, /'\/tolerations\/0'.*'keys' not allowed/],
  'rights for people where nothing is kept': [{ ...AGENT, rbac: { userRoles: true } }, /'\/rbac\/userRoles'/],
  'a policy for nodes without the one for pods': [{ admissionPolicy: { nodes: true } }, /'\/admissionPolicy/],
  'a policy with a setting that there is not': [
    { service: { policy: 'mode: enforce\nexcludes: []\n' } },
    /service\.policy has no setting excludes: its settings are mode, guard, /,
  ],
  'an entry of a policy with a setting that there is not': [
    { service: { policy: 'mode: enforce\nexclude: [{ taints: [a] }, { namespace: [b] }]\n' } },
    /service\.policy\.exclude\[1\] has no setting namespace: its settings are namespaces, labels, annotations, ownerKinds, priorityClassNames, taints, until/,
  ],
  'a policy without a mode': [{ service: { policy: '# mode: enforce\n' } }, /service\.policy has no mode: /],
  'a policy that is no YAML': [
    { service: { policy: 'mode: [' } },
    /service\.policy is not a policy document: /,
  ],
  'an agent without a region': [{ ...AGENT, agent: { cluster: 'c', id: 'a' } }, /agent\.region: /],
  "an agent's ID that is none": [{ ...AGENT, agent: { id: 'Edge 1' } }, /'\/agent\/id'/],
  'an account that lost its zeros': [{ ...AGENT, agent: { account: 111122223333 } }, /'\/agent\/account'/],
};
for (const [what, [values, message]] of Object.entries(REFUSED)) {
  test(`the chart rejects ${what}`, () => {
    assert.throws(
      () => renderChart(values),
      (error: unknown) => error instanceof HelmError && message.test(error.message),
    );
  });
}

test('the folders of manifests match the rendered chart', () => {
  const rendered = manifests();
  for (const [path, text] of rendered) {
    assert.equal(readFileSync(join(DEPLOY, path), 'utf8'), text, `write ${path} anew with npm run manifests`);
  }
  const found = Object.keys(FOLDERS).flatMap((folder) =>
    readdirSync(join(DEPLOY, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.yaml'))
      .map((file) => join(folder, file)),
  );
  const byHand = ['kustomization.yaml', 'namespace.yaml', 'settings.yaml'];
  assert.deepEqual(
    found.filter((path) => !byHand.some((name) => path.endsWith(`/${name}`))).toSorted(),
    [...rendered.keys()].toSorted(),
  );
});

for (const [folder, values] of Object.entries(DEFAULTS)) {
  test(`kubectl apply -k deploy/${folder} applies the objects that helm installs, and the namespace`, () => {
    const byKustomize = new Map(objectsOf(kubectl(['kustomize', join(DEPLOY, folder)])));
    assert.ok(byKustomize.delete(`Namespace/${NAMESPACE}`));
    const byHelm = objectsOf(renderChart(values));
    assert.deepEqual([...byKustomize.keys()].toSorted(), [...byHelm.keys()].toSorted());
    for (const [name, object] of byHelm) assert.deepEqual(byKustomize.get(name), object);
  });
}
