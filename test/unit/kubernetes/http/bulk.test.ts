import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseInt64Json } from '#shared/kubernetes/http/api-json.ts';
import { type Trim, trimNode, trimPod } from '#shared/kubernetes/http/bulk.ts';
import { projectNode, projectPod } from '#shared/kubernetes/project.ts';

const KEYS = [
  ...['managedFields', 'spec', 'dnsPolicy', 'nodeName', 'tolerations', 'priorityClassName', 'taints', 'uid'],
  ...['containerStatuses', 'qosClass', 'conditions', 'status'],
];
/** Texts that would look like keys or ends of cuts without their escapes. */
const text = fc.constantFrom(
  ...KEYS,
  ']},"spec":{',
  '"nodeName":"evil"',
  '],"qosClass":"',
  ',"status":{',
  'ä\\"',
);
const bulk = fc.dictionary(fc.constantFrom(...KEYS.map((key) => `f:${key}`), 'name'), fc.array(text));
/** Managed fields of the manager that announced a disruption. */
const DISRUPTION = { 'f:status': { 'f:conditions': { 'k:{"type":"DisruptionTarget"}': {} } } };
const taint = fc.record({ key: text, effect: fc.constantFrom('NoExecute', 'NoSchedule') });
const toleration = fc.record(
  { key: text, operator: fc.constant('Exists'), tolerationSeconds: fc.constant(10) },
  { requiredKeys: ['key', 'operator'] },
);

const metadata = fc.record(
  {
    name: fc.constant('p'),
    namespace: fc.constant('default'),
    uid: fc.constantFrom('u1', 'u2'),
    resourceVersion: fc.constant('7'),
    creationTimestamp: fc.constant('2026-01-01T00:00:00Z'),
    annotations: fc.dictionary(text, text),
    ownerReferences: fc.constant([{ kind: 'Job', name: 'j', uid: 'o', controller: true }]),
    deletionTimestamp: fc.constant('2026-01-01T00:01:00Z'),
    managedFields: fc.array(fc.record({ manager: text, fieldsV1: fc.oneof(bulk, fc.constant(DISRUPTION)) })),
  },
  { requiredKeys: ['name', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp'] },
);
const pod = fc.record({
  metadata,
  spec: fc.record(
    {
      volumes: fc.array(bulk),
      containers: fc.array(bulk),
      restartPolicy: fc.constant('Always'),
      dnsPolicy: fc.constant('ClusterFirst'),
      nodeName: fc.constantFrom('n1', 'n2'),
      tolerations: fc.array(toleration),
      priorityClassName: text,
    },
    { requiredKeys: [] },
  ),
  status: fc.record(
    {
      conditions: fc.constantFrom(
        [{ type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-01-01T00:00:05Z' }],
        [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }],
      ),
      initContainerStatuses: fc.array(bulk),
      containerStatuses: fc.array(bulk),
      qosClass: text,
    },
    { requiredKeys: [] },
  ),
});
const node = fc.record({
  metadata,
  spec: fc.record({ taints: fc.array(taint), podCIDR: text }, { requiredKeys: [] }),
  status: fc.record(
    { conditions: fc.array(bulk), images: fc.array(bulk), nodeInfo: bulk },
    { requiredKeys: [] },
  ),
});

/** Returns the same object with the fields of each level in another order. */
function reordered(value: unknown, order: (keys: string[]) => string[]): unknown {
  if (Array.isArray(value)) return value.map((item) => reordered(item, order));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value);
  const names = order(fields.map(([name]) => name));
  return Object.fromEntries(names.map((name) => [name, reordered(Object(value)[name], order)]));
}

/** Returns the fields read from the JSON of an object without bulk, or, like the reader, from the whole JSON if the cuts broke it. */
function read(object: unknown, trim: Trim, project: (json: unknown) => unknown): unknown {
  const json = Buffer.from(JSON.stringify(object));
  let trimmed: unknown;
  try {
    trimmed = parseInt64Json(trim(json, 1));
  } catch {
    trimmed = parseInt64Json(json.toString());
  }
  return project(trimmed);
}

const ORDERS = {
  'as the API server writes it': (keys: string[]) => keys,
  'by the alphabet': (keys: string[]) => keys.toSorted(),
  backwards: (keys: string[]) => keys.toReversed(),
} as const;

describe('an object reads the same without its bulk, with fields', () => {
  for (const [name, order] of Object.entries(ORDERS)) {
    for (const [kind, objects, trim, project] of [
      ['a pod', pod, trimPod, projectPod],
      ['a node', node, trimNode, projectNode],
    ] as const)
      test(`${name}: ${kind}`, () => {
        const given = (objects as fc.Arbitrary<unknown>).map((object) => reordered(object, order));
        fc.assert(
          fc.property(given, (object) => assert.deepEqual(read(object, trim, project), project(object))),
          { numRuns: 500 },
        );
      });
  }
});

test("most of a pod's JSON is bulk", () => {
  const images = Array.from({ length: 20 }, (_, index) => ({ name: `image-${index}` }));
  const object = {
    metadata: { name: 'p', uid: 'u', managedFields: images },
    spec: { containers: images, dnsPolicy: 'Default', nodeName: 'n1' },
    status: { containerStatuses: images, qosClass: 'Burstable' },
  };
  assert.equal(
    trimPod(Buffer.from(JSON.stringify(object)), 1),
    '{"metadata":{"name":"p","uid":"u","managedFields":[]},"spec":{"dnsPolicy":"Default","nodeName":"n1"},"status":{"containerStatuses":[],"qosClass":"Burstable"}}',
  );
});

test('keeps managed fields if another array may end where they seem to end', () => {
  const json = (metadata: object) => JSON.stringify({ metadata, spec: {} });
  for (const metadata of [
    { managedFields: [{ manager: 'm' }], ownerReferences: [{ kind: 'Job', name: 'j' }] },
    { managedFields: [{ manager: ']' }] },
  ])
    assert.equal(trimPod(Buffer.from(json(metadata)), 1), json(metadata));
});

test("removes the status from a node's event", () => {
  const event = { type: 'MODIFIED', object: { metadata: { name: 'n' }, spec: {}, status: { images: [1] } } };
  assert.equal(
    trimNode(Buffer.from(JSON.stringify(event)), 2),
    '{"type":"MODIFIED","object":{"metadata":{"name":"n"},"spec":{}}}',
  );
});
