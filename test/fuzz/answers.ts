import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { deduplicationId, deltaMessage, messageGroupId, parseDelta } from '#shared/aws/delta-message.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import { type Delta, onlyPod } from '#shared/eviction/facts.ts';
import { clusterName, type NodeName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod, Resource } from '#shared/kubernetes/api.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { scriptedServer } from '#test/unit/kubernetes/scripted-server.ts';
import { SendingView } from '#test/world/sending-view.ts';
import { hostileJson, sameMeaning } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { must, refusal } from './refusal.ts';

const NOW = Date.UTC(2026, 10, 22, 12);

const NODE = {
  kind: 'Node',
  apiVersion: 'v1',
  metadata: {
    name: 'n1',
    uid: '7',
    resourceVersion: '1205',
    labels: { 'topology.kubernetes.io/zone': 'a' },
    managedFields: [
      {
        manager: 'kubectl',
        operation: 'Update',
        time: '2026-11-22T11:59:59Z',
        fieldsV1: { 'f:spec': { 'f:taints': {} } },
      },
    ],
  },
  spec: {
    taints: [
      { key: 'maintenance', value: 'planned', effect: 'NoExecute', timeAdded: '2026-11-22T11:59:59Z' },
      { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
    ],
  },
  status: {
    conditions: [{ type: 'Ready', status: 'True' }],
    images: [{ names: ['a'], sizeBytes: 1234567890123456 }],
  },
};

const POD = {
  metadata: {
    name: 'web-0',
    namespace: 'shop',
    uid: '11111111-0000-4000-8000-000000000000',
    resourceVersion: '1206',
    generation: 1,
    creationTimestamp: '2026-11-22T11:00:00Z',
    labels: { app: 'web' },
    annotations: { 'example.com/a': 'b' },
    ownerReferences: [{ kind: 'ReplicaSet', name: 'web', controller: true, uid: '9' }],
    managedFields: [{ manager: 'taintward-x', time: '2026-11-22T11:59:59Z', fieldsV1: { 'f:status': {} } }],
  },
  spec: {
    containers: [{ name: 'a', image: 'b' }],
    dnsPolicy: 'ClusterFirst',
    nodeName: 'n1',
    tolerations: [{ key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3660 }],
  },
  status: {
    conditions: [
      { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-11-22T11:00:01Z' },
      { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' },
    ],
  },
};
const LEAVING = {
  ...POD,
  metadata: {
    ...POD.metadata,
    deletionTimestamp: '2026-11-22T12:00:30Z',
    deletionGracePeriodSeconds: 30,
    finalizers: ['example.com/volume'],
  },
};

const listOf = (kind: string, items: readonly object[]) => ({
  kind: `${kind}List`,
  apiVersion: 'v1',
  metadata: { resourceVersion: '1300', continue: '', remainingItemCount: 3 },
  items,
});
const STATUS = {
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  message: "Cannot evict pod as it would violate the pod's disruption budget.",
  reason: 'TooManyRequests',
  details: {
    causes: [{ reason: 'DisruptionBudget', message: 'The budget web needs 2 healthy pods' }],
    retryAfterSeconds: 10,
  },
  code: 429,
};
const VERSION = { major: '1', minor: '36+', gitVersion: 'v1.36.3', goVersion: 'go1.26' };
const TAKEOVER = {
  metadata: { resourceVersion: '7' },
  spec: {
    keys: ['maintenance'],
    lapseSeconds: 90,
    heartbeat: '2026-11-22T11:59:59Z',
    aliveSince: '2026-11-22T11:00:00Z',
    withheld: 'an eviction is overdue by 1m1s',
  },
};
const LEASE = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'n1', namespace: 'kube-node-lease' },
  spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' },
};
const REVIEW = { kind: 'SelfSubjectAccessReview', status: { allowed: true } };
const BOOKMARK = {
  metadata: { resourceVersion: '1300', annotations: { 'k8s.io/initial-events-end': 'true' } },
};
const EVENTS = [
  { type: 'ADDED', object: NODE },
  { type: 'MODIFIED', object: POD },
  { type: 'DELETED', object: LEAVING },
  { type: 'BOOKMARK', object: BOOKMARK },
  { type: 'ERROR', object: { ...STATUS, code: 410, reason: 'Expired' } },
];

/** The API calls, each with samples of a valid answer. */
const DEPLOYMENT = { kind: 'Deployment', metadata: { name: 'web' }, spec: { replicas: 3 } };

const CALLS = {
  getNode: { request: (api: RestApi) => api.getNode(nodeName('n1')), samples: [NODE, STATUS] },
  getPod: {
    request: (api: RestApi) => api.getPod({ namespace: 'shop', name: 'web-0' }),
    samples: [POD, LEAVING, STATUS],
  },
  podsOnNode: {
    request: (api: RestApi) =>
      api.podsOnNode(
        nodeName('n1'),
        [1, 2, 3, 4].map((n) => ({ namespace: 'shop', name: `web-${n}` })),
      ),
    samples: [listOf('Pod', [POD, LEAVING]), VERSION],
  },
  listNodes: {
    request: (api: RestApi) => listed(api.nodes, api.pods),
    samples: [listOf('Node', [NODE]), listOf('Pod', [POD, LEAVING])],
  },
  watch: { request: (api: RestApi) => watched(api), samples: EVENTS },
  mark: {
    request: (api: RestApi) => api.markDisrupted({ namespace: 'shop', name: 'web-0' }, podUid('u1'), NOW),
    samples: [POD, LEAVING, STATUS],
  },
  delete: {
    request: (api: RestApi) => api.deletePod({ namespace: 'shop', name: 'web-0' }, { uid: podUid('u1') }),
    samples: [POD, STATUS],
  },
  evict: {
    request: (api: RestApi) => api.evictPod({ namespace: 'shop', name: 'web-0' }, { uid: podUid('u1') }),
    samples: [STATUS, { ...STATUS, status: 'Success', code: 201 }],
  },
  event: {
    request: (api: RestApi) =>
      api.createEvent(
        {
          pod: { namespace: 'shop', name: 'web-0' },
          key: 'k',
          type: 'Normal',
          reason: 'TaintManagerEviction',
          message: 'm',
        } as never,
        NOW,
      ),
    samples: [STATUS],
  },
  takeover: { request: (api: RestApi) => api.getTakeover(), samples: [TAKEOVER, STATUS] },
  tried: { request: (api: RestApi) => api.tryTaints([]), samples: [NODE, STATUS] },
  lease: { request: (api: RestApi) => api.getNodeLease(nodeName('n1')), samples: [LEASE, STATUS] },
  replicas: {
    request: (api: RestApi) => api.getReplicas({ namespace: 'shop', kind: 'Deployment', name: 'web' }),
    samples: [DEPLOYMENT, STATUS],
  },
  review: {
    request: (api: RestApi) => api.allowed({ verb: 'delete', resource: 'pods' } as never),
    samples: [REVIEW],
  },
} as const;
type CallName = keyof typeof CALLS;
const CALL_NAMES = Object.keys(CALLS) as CallName[];

/** An answer of an API server; any of its fields may be invalid. */
interface Answer {
  readonly call: CallName;
  readonly status: number;
  readonly lines: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly end: 'whole' | 'gzip' | 'false-gzip' | 'reset' | 'short';
}

const NO_HEADERS: Readonly<Record<string, string>> = {};

const HEADERS: readonly Readonly<Record<string, string>>[] = [
  {},
  {},
  {},
  { 'retry-after': '5' },
  { 'retry-after': '99999999999999999999' },
  { 'retry-after': 'Sun, 22 Nov 2026 12:00:05 GMT' },
  { 'retry-after': '-1' },
  { date: 'never' },
  { date: 'Thu, 01 Jan 1970 00:00:00 GMT' },
  { 'content-type': 'text/html' },
  { location: 'http://127.0.0.1:1/' },
  { 'x-long': 'a'.repeat(8_000) },
];

const answer: fc.Arbitrary<Answer> = fc
  .constantFrom(...CALL_NAMES, 'watch' as const, 'listNodes' as const)
  .chain((call) =>
    fc.record({
      call: fc.constant(call),
      status: fc.oneof(
        { weight: 6, arbitrary: fc.constant(200) },
        {
          weight: 3,
          arbitrary: fc.constantFrom(
            201,
            204,
            301,
            400,
            401,
            403,
            404,
            409,
            410,
            418,
            422,
            429,
            500,
            503,
            504,
            599,
          ),
        },
      ),
      lines: fc.array(hostileJson(CALLS[call].samples), {
        minLength: 1,
        maxLength: call === 'watch' ? 5 : 1,
      }),
      headers: fc.constantFrom(...HEADERS),
      end: fc.oneof(
        { weight: 12, arbitrary: fc.constant('whole' as const) },
        { weight: 3, arbitrary: fc.constantFrom('gzip', 'false-gzip', 'reset', 'short') },
      ),
    }),
  );

/**
 * Answers of API servers over HTTP, for every API call: each is read, or rejected with an `ApiError`. SQS accepts the deltas that
 * a relay makes of an answer, and the functions read them.
 */
export const answers: Kind<Answer> = {
  name: 'answers',
  open: async () => {
    let next: Answer | undefined;
    let now = NOW;
    const clock = { now: () => now };
    const closing: (() => void)[] = [];
    const ending = { after: (close: () => void) => void closing.push(close) };
    const { connection, requests } = await scriptedServer(ending, (response) => respond(response, next), {
      clock,
    });
    const api = new RestApi(connection, clock, 'fuzz');
    return {
      inputs: answer,
      feed: async (given) => {
        next = given;
        // The API client calls an unresponsive server again after this time, and reads its release again.
        now += 3_700_000;
        requests.length = 0;
        return request(api, given);
      },
      close: () => {
        api.close();
        for (const close of closing) close();
      },
    };
  },
};

function respond(response: ServerResponse, given: Answer | undefined): void {
  const { status, lines, headers, end } = given ?? {
    status: 500,
    lines: [],
    headers: NO_HEADERS,
    end: 'whole',
  };
  const body = Buffer.from(`${lines.join('\n')}\n`);
  response.sendDate = headers['date'] === undefined;
  switch (end) {
    case 'gzip':
      response.writeHead(status, { ...headers, 'content-encoding': 'gzip' }).end(gzipSync(body));
      return;
    case 'false-gzip':
      response.writeHead(status, { ...headers, 'content-encoding': 'gzip' }).end(body);
      return;
    case 'reset':
      response.writeHead(status, headers);
      response.write(body.subarray(0, body.length / 2), () => response.destroy());
      return;
    case 'short':
      response.writeHead(status, { ...headers, 'content-length': body.length + 10 });
      response.write(body, () => response.destroy());
      return;
    default:
      response.writeHead(status, headers).end(body);
  }
}

async function request(api: RestApi, { call }: Answer): Promise<Outcome> {
  try {
    await CALLS[call].request(api);
    return 'accepted';
  } catch (error) {
    return refusal(error, [ApiError, LateCallError]);
  }
}

const signal = new AbortController().signal;

async function listed(nodes: Resource<LiveNode>, pods: Resource<LivePod>): Promise<void> {
  const view = viewOf();
  const page = await nodes.list({ limit: 50, signal });
  check(view.replaceNodes(page.items, NOW));
  const { items } = await pods.list({ onNode: nodeName('n1'), signal });
  check(view.replacePods(items, NOW));
}

async function watched(api: RestApi): Promise<void> {
  const view = viewOf();
  check(view.replaceNodes([tainted(nodeName('n1'))], NOW));
  check(view.replacePods([], NOW));
  for await (const event of api.nodes.watch({ initial: true, timeoutSeconds: 60, signal })) {
    if (event.kind === 'upsert') check(view.upsertNode(event.object, NOW));
    if (event.kind === 'delete') check(view.deleteNode(event.object.name, NOW));
  }
  const follows = (node: NodeName) => node === 'n1';
  for await (const event of api.pods.watch({ resourceVersion: '1', timeoutSeconds: 60, follows, signal })) {
    if (event.kind === 'upsert') check(view.upsertPod(event.object, NOW));
    if (event.kind === 'delete') check(view.deletePod(event.object, NOW));
  }
}

const viewOf = () => new SendingView(clusterName('prod'), 1);

const tainted = (name: NodeName): LiveNode => ({
  name,
  resourceVersion: '1',
  taints: [{ key: 'a', effect: 'NoExecute' }],
});

/** Checks that SQS accepts the deltas of a relay, and that they can be read. */
function check(sent: readonly Delta[]): void {
  for (const delta of sent) {
    const message = deltaMessage(delta);
    const ids = { groupId: messageGroupId(delta.ref), deduplicationId: deduplicationId(delta) };
    const fault = messageFault({ body: message.body, ...ids });
    must(fault === undefined, `SQS takes no such delta: ${fault}`);
    const read = parseDelta(message.body);
    must(
      sameMeaning(onlyPod(read), onlyPod(delta)) && read.kind === delta.kind,
      'is another delta when it is read',
    );
  }
}
