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

const REFUSED: Readonly<Record<string, readonly [Values, RegExp]>> = {
  'a value that there is not': [{ replicaCount: 3 }, /'replicaCount' not allowed/],
  'one below another': [{ image: { sha: 'x' } }, /'\/image'.*'sha' not allowed/],
  'a mode that there is not': [{ mode: 'relay' }, /'\/mode'.*'service', 'agent'/],
  'no replica at all': [{ replicas: 0 }, /'\/replicas'.*minimum/],
  'a digest that is none': [{ image: { digest: 'latest' } }, /'\/image\/digest'/],
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
