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

/** Returns an answer of an API server, or of a proxy, as an error. */
const answered = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): ApiError =>
  refusal(CALL, 'api', { status, headers }, body, []);

/** Returns an answer with a `meta/v1.Status`, as API servers write it. */
function failed(
  code: number,
  message: string,
  reason?: string,
  details?: object,
  retryAfter?: string,
): ApiError {
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code };
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  return answered(code, JSON.stringify({ ...status, reason, details }), headers);
}

/** The details of a rejection by a disruption budget. */
const budget = (message: string, more: object = {}) => ({
  ...more,
  causes: [{ reason: 'DisruptionBudget', message: `The disruption budget web ${message}` }],
});

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
const QUOTA =
  'events "web-0.18a" is forbidden: exceeded quota: few, requested: count/events=1, used: count/events=9, limited: count/events=9';
const UNCALLED = 'Internal error occurred: failed calling webhook "a.example.com": connection refused';
const WEBHOOK_LATE =
  'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://a.shop.svc:443/validate?timeout=10s": context deadline exceeded';
const CONFLICTS = `Timeout: couldn't update PodDisruptionBudget "web" due to conflicts`;
const UNEXPLAINED = 'admission webhook "a.example.com" denied the request without explanation';
const LATER = 'admission webhook "a.example.com" denied the request: later';
const STUCK = `${KUBEVIRT}: VMI vm is configured with an eviction strategy but is not live-migratable`;

/** As Kubernetes 1.36 answers. */
const TERMINATING = failed(
  403,
  'pods "web-0" is forbidden: unable to create new content in namespace shop because it is being terminated',
  'Forbidden',
  {
    name: 'web-0',
    kind: 'pods',
    causes: [
      {
        reason: 'NamespaceTerminating',
        field: 'metadata.namespace',
        message: 'namespace shop is being terminated',
      },
    ],
  },
);

const MOVED = failed(429, `${KUBEVIRT}: ${EVACUATION}`);

const CASES: Readonly<Record<Refuser, Readonly<Record<string, ApiError>>>> = {
  budget: {
    'a disruption budget that needs its pods': failed(
      429,
      VIOLATES,
      'TooManyRequests',
      budget('needs 2 healthy pods and has 2 currently'),
    ),
    'a disruption budget that its controller has not looked at yet': failed(
      429,
      VIOLATES,
      'TooManyRequests',
      budget('is still being processed by the server.', { retryAfterSeconds: 10 }),
      '10',
    ),
    'several disruption budgets': failed(500, SEVERAL),
    'a disruption budget whose status cannot be counted down, from Kubernetes 1.37 on': failed(
      403,
      NEGATIVE,
      'Forbidden',
      budget('does not allow evicting pods currently: pdb disruptions allowed is negative'),
    ),
    'the same, before Kubernetes 1.37': failed(403, NEGATIVE, 'Forbidden'),
    'a disruption budget with too many evictions under way, before Kubernetes 1.37': failed(
      403,
      TOO_MANY,
      'Forbidden',
    ),
    'a disruption budget that too many evictions change at a time': failed(
      504,
      CONFLICTS,
      'Timeout',
      { retryAfterSeconds: 10 },
      '10',
    ),
  },
  admission: {
    'the webhook of KubeVirt': MOVED,
    'the webhook of KubeVirt, for a VM that moves already': failed(
      429,
      `${KUBEVIRT}: Evacuation in progress: ${EVACUATION}`,
    ),
    'the webhook of KubeVirt, for a VM that cannot move': failed(429, STUCK),
    'a webhook that calls its refusal TooManyRequests, and says when to come again': failed(
      429,
      `${KUBEVIRT}: ${EVACUATION}`,
      'TooManyRequests',
      { retryAfterSeconds: 3 },
      '3',
    ),
    'the webhook of Strimzi, which answers 500': failed(500, STRIMZI),
    'a webhook without a status of its own': failed(400, UNEXPLAINED),
    'a webhook that answers 503': failed(503, LATER),
    'a ValidatingAdmissionPolicy': failed(422, POLICY, 'Invalid', { causes: [{ message: POLICY }] }),
  },
  server: {
    'priority and fairness, and too many requests in flight': answered(
      429,
      'Too many requests, please try again later.\n',
      { 'retry-after': '1', 'content-type': 'text/plain; charset=utf-8' },
    ),
    'an API server that shuts down': answered(
      429,
      'The apiserver is shutting down, please try again later.\n',
      { 'retry-after': '5' },
    ),
    'an API server whose cache is not ready': failed(
      429,
      'storage is (re)initializing',
      'TooManyRequests',
      { retryAfterSeconds: 1 },
      '1',
    ),
    'a 429 that names nobody': failed(429, 'Too many requests: limit reached', 'TooManyRequests'),
    'a proxy that throttles': answered(429, '<html>429 Too Many Requests</html>'),
    'a proxy without a server behind it': answered(502, '<html>502 Bad Gateway</html>'),
    'no answer': unreachable(CALL, 'api', new Error('reset')),
    'no answer, whatever its words': new ApiError('admission webhook "x" denied the request: no', 0),
    'credentials that are not taken': failed(401, 'Unauthorized', 'Unauthorized'),
    'an aggregated API without a server behind it': failed(
      503,
      'the server is currently unable to handle the request',
      'ServiceUnavailable',
    ),
  },
  other: {
    'a permission that is missing': failed(403, NO_RIGHT, 'Forbidden'),
    'a namespace that is being deleted': TERMINATING,
    'a webhook that cannot be called': failed(500, UNCALLED, 'InternalError'),
    'a webhook that does not answer in time': failed(500, WEBHOOK_LATE, 'InternalError'),
    'a quota that is used up': failed(403, QUOTA, 'Forbidden'),
    'a precondition that does not hold': failed(
      409,
      'the UID in the precondition does not match',
      'Conflict',
    ),
  },
};

for (const [refuser, errors] of Object.entries(CASES)) {
  describe(`an eviction's rejection comes from ${refuser}:`, () => {
    for (const [who, error] of Object.entries(errors)) {
      test(who, () => {
        assert.equal(refuserOf(error), refuser);
        // Only a rejection of the pod itself is returned as blocked, with the server's message.
        const isOfPod = refuser === 'budget' || refuser === 'admission';
        const answer = isOfPod ? { kind: 'blocked', by: refuser, reason: error.message } : undefined;
        assert.deepEqual(blockedBy(error), answer);
        // Only a missing permission is advised to be granted.
        assert.equal(
          error.message.includes('grant these credentials'),
          who === 'a permission that is missing',
        );
      });
    }
  });
}

test('a rejection quotes the message of its webhook', () => {
  const message = `Cannot create pods/eviction shop/web-0 at api: 429; ${KUBEVIRT}: ${EVACUATION}.`;
  assert.equal(MOVED.message, message);
});

test('keeps the cause of a namespace that is being deleted', () => {
  assert.deepEqual(TERMINATING.causes, [NAMESPACE_TERMINATING]);
});
