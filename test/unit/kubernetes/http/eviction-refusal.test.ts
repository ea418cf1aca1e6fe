import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApiError, refusal, unreachable } from '#shared/kubernetes/http/api-error.ts';
import type { Call } from '#shared/kubernetes/http/call.ts';
import {
  blockedBy,
  NAMESPACE_TERMINATING,
  type Refuser,
  refuserOf,
} from '#shared/kubernetes/http/eviction-refusal.ts';

const CALL: Call = {
  verb: 'create',
  resource: 'pods/eviction',
  object: 'shop/web-0',
  path: '/api/v1/namespaces/shop/pods/web-0/eviction',
};

/** Returns an answer of an API server as an error. */
const answered = (
  status: number,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
): ApiError =>
  refusal(CALL, 'api', { status, headers }, typeof body === 'string' ? body : JSON.stringify(body), []);

/** `meta/v1.Status`, as API servers write it. */
const status = (code: number, message: string, more: object = {}) => ({
  ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code },
  ...more,
});

const budgetCause = (message: string) => ({ details: { causes: [{ reason: 'DisruptionBudget', message }] } });

const VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget.";
const SEVERAL =
  'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
const KUBEVIRT = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request';
const EVACUATION = 'Eviction triggered evacuation of VMI "shop/web-0"';
const STRIMZI =
  'admission webhook "strimzi-drain-cleaner.strimzi.io" denied the request: The pod will be rolled by the Strimzi Cluster Operator.';
const POLICY = `pods "web-0" is forbidden: ValidatingAdmissionPolicy 'no-evictions' with binding 'shop' denied request: not now`;
const NEGATIVE = 'poddisruptionbudget.policy "web" is forbidden: pdb disruptions allowed is negative';
const TOO_MANY =
  'poddisruptionbudget.policy "web" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB controller';
const NO_RIGHT =
  'pods "web-0" is forbidden: User "system:serviceaccount:taintward:taintward" cannot create resource "pods/eviction" in API group "" in the namespace "shop"';

/** As Kubernetes 1.36 answers. */
const TERMINATING = status(
  403,
  'pods "web-0" is forbidden: unable to create new content in namespace shop because it is being terminated',
  {
    reason: 'Forbidden',
    details: {
      ...{ name: 'web-0', kind: 'pods' },
      causes: [
        {
          reason: 'NamespaceTerminating',
          message: 'namespace shop is being terminated',
          field: 'metadata.namespace',
        },
      ],
    },
  },
);

const QUOTA =
  'events "web-0.18a" is forbidden: exceeded quota: few, requested: count/events=1, used: count/events=9, limited: count/events=9';
const WEBHOOK_LATE =
  'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://a.shop.svc:443/validate?timeout=10s": context deadline exceeded';

const CASES: readonly (readonly [string, ApiError, Refuser])[] = [
  [
    'a disruption budget that needs its pods',
    answered(
      429,
      status(429, VIOLATES, {
        reason: 'TooManyRequests',
        ...budgetCause('The disruption budget web needs 2 healthy pods and has 2 currently'),
      }),
    ),
    'budget',
  ],
  [
    'a disruption budget that its controller has not looked at yet',
    answered(
      429,
      status(429, VIOLATES, {
        reason: 'TooManyRequests',
        details: {
          retryAfterSeconds: 10,
          causes: [
            {
              reason: 'DisruptionBudget',
              message: 'The disruption budget web is still being processed by the server.',
            },
          ],
        },
      }),
      { 'retry-after': '10' },
    ),
    'budget',
  ],
  ['several disruption budgets', answered(500, status(500, SEVERAL)), 'budget'],
  [
    'a disruption budget whose status cannot be counted down, from Kubernetes 1.37 on',
    answered(
      403,
      status(403, NEGATIVE, {
        reason: 'Forbidden',
        details: {
          ...{ name: 'web', group: 'policy', kind: 'poddisruptionbudget' },
          causes: [
            {
              reason: 'DisruptionBudget',
              message:
                'The disruption budget web does not allow evicting pods currently: pdb disruptions allowed is negative',
            },
          ],
        },
      }),
    ),
    'budget',
  ],
  [
    'the same, before Kubernetes 1.37',
    answered(403, status(403, NEGATIVE, { reason: 'Forbidden' })),
    'budget',
  ],
  [
    'a disruption budget with too many evictions under way, before Kubernetes 1.37',
    answered(403, status(403, TOO_MANY, { reason: 'Forbidden' })),
    'budget',
  ],
  [
    'a disruption budget that too many evictions change at a time',
    answered(
      504,
      status(504, `Timeout: couldn't update PodDisruptionBudget "web" due to conflicts`, {
        reason: 'Timeout',
        details: { retryAfterSeconds: 10 },
      }),
      { 'retry-after': '10' },
    ),
    'budget',
  ],
  ['the webhook of KubeVirt', answered(429, status(429, `${KUBEVIRT}: ${EVACUATION}`)), 'admission'],
  [
    'the webhook of KubeVirt, for a VM that moves already',
    answered(429, status(429, `${KUBEVIRT}: Evacuation in progress: ${EVACUATION}`)),
    'admission',
  ],
  [
    'the webhook of KubeVirt, for a VM that cannot move',
    answered(
      429,
      status(429, `${KUBEVIRT}: VMI vm is configured with an eviction strategy but is not live-migratable`),
    ),
    'admission',
  ],
  [
    'a webhook that calls its refusal TooManyRequests, and says when to come again',
    answered(
      429,
      status(429, `${KUBEVIRT}: ${EVACUATION}`, {
        reason: 'TooManyRequests',
        details: { retryAfterSeconds: 3 },
      }),
      { 'retry-after': '3' },
    ),
    'admission',
  ],
  ['the webhook of Strimzi, which answers 500', answered(500, status(500, STRIMZI)), 'admission'],
  [
    'a webhook without a status of its own',
    answered(400, status(400, 'admission webhook "a.example.com" denied the request without explanation')),
    'admission',
  ],
  [
    'a webhook that answers 503',
    answered(503, status(503, 'admission webhook "a.example.com" denied the request: later')),
    'admission',
  ],
  [
    'a ValidatingAdmissionPolicy',
    answered(422, status(422, POLICY, { reason: 'Invalid', details: { causes: [{ message: POLICY }] } })),
    'admission',
  ],
  [
    'priority and fairness, and too many requests in flight',
    answered(429, 'Too many requests, please try again later.\n', {
      'retry-after': '1',
      'content-type': 'text/plain; charset=utf-8',
    }),
    'server',
  ],
  [
    'an API server that shuts down',
    answered(429, 'The apiserver is shutting down, please try again later.\n', { 'retry-after': '5' }),
    'server',
  ],
  [
    'an API server whose cache is not ready',
    answered(
      429,
      status(429, 'storage is (re)initializing', {
        reason: 'TooManyRequests',
        details: { retryAfterSeconds: 1 },
      }),
      { 'retry-after': '1' },
    ),
    'server',
  ],
  [
    'a 429 that names nobody',
    answered(429, status(429, 'Too many requests: limit reached', { reason: 'TooManyRequests' })),
    'server',
  ],
  ['a proxy that throttles', answered(429, '<html>429 Too Many Requests</html>'), 'server'],
  ['a proxy without a server behind it', answered(502, '<html>502 Bad Gateway</html>'), 'server'],
  ['no answer', unreachable(CALL, 'api', new Error('reset')), 'server'],
  [
    'no answer, whatever its words',
    new ApiError('admission webhook "x" denied the request: no', 0),
    'server',
  ],
  [
    'credentials that are not taken',
    answered(401, status(401, 'Unauthorized', { reason: 'Unauthorized' })),
    'server',
  ],
  ['a permission that is missing', answered(403, status(403, NO_RIGHT, { reason: 'Forbidden' })), 'other'],
  ['a namespace that is being deleted', answered(403, TERMINATING), 'other'],
  [
    'a webhook that cannot be called',
    answered(
      500,
      status(500, 'Internal error occurred: failed calling webhook "a.example.com": connection refused', {
        reason: 'InternalError',
      }),
    ),
    'other',
  ],
  [
    'a webhook that does not answer in time',
    answered(500, status(500, WEBHOOK_LATE, { reason: 'InternalError' })),
    'other',
  ],
  ['a quota that is used up', answered(403, status(403, QUOTA, { reason: 'Forbidden' })), 'other'],
  [
    'an aggregated API without a server behind it',
    answered(
      503,
      status(503, 'the server is currently unable to handle the request', { reason: 'ServiceUnavailable' }),
    ),
    'server',
  ],
  [
    'a precondition that does not hold',
    answered(409, status(409, 'the UID in the precondition does not match', { reason: 'Conflict' })),
    'other',
  ],
];

describe("source of an eviction's rejection:", () => {
  for (const [who, error, refuser] of CASES) {
    test(`${who}: ${refuser}`, () => assert.equal(refuserOf(error), refuser));
  }
});

test("returns a rejection of the pod itself as blocked with the server's message, and no other rejection", () => {
  for (const [who, error, refuser] of CASES) {
    const isOfPod = refuser === 'budget' || refuser === 'admission';
    const answer = isOfPod ? { kind: 'blocked', by: refuser, reason: error.message } : undefined;
    assert.deepEqual(blockedBy(error), answer, who);
  }
  const [, moved] = CASES.find(([who]) => who === 'the webhook of KubeVirt') ?? [];
  assert.equal(
    moved?.message,
    `Cannot create pods/eviction shop/web-0 at api: 429; ${KUBEVIRT}: ${EVACUATION}.`,
  );
});

test('keeps the cause of a namespace that is being deleted', () => {
  assert.deepEqual(answered(403, TERMINATING).causes, [NAMESPACE_TERMINATING]);
});

test('advises to grant a permission only when a permission is missing', () => {
  const told = CASES.filter(([, { message }]) => message.includes('grant these credentials'));
  assert.deepEqual(
    told.map(([who]) => who),
    ['a permission that is missing'],
  );
});
