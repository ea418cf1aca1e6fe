import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { AccessAnswer } from '#shared/access/access-check.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { PROVEN_KUBERNETES } from '#shared/kubernetes/proven-versions.ts';
import { TAKEOVER_PATH } from '#shared/kubernetes/takeover.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import type { Account } from '#shared/operations/fleet/account.ts';
import { type ContextFleet, type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { examine } from '#shared/operations/look/doctor.ts';
import { NODE_TAKEOVER, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import { pathOf } from '#shared/operations/takeover/manifest.ts';
import type { ClusterRegistry, RegisteredCluster } from '#shared/state/registry.ts';
import { StoreError } from '#shared/state/store.ts';
import { VERSION } from '#shared/version.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { controllerManager, SHOWN_SKEW_MS, type Shown, shownCluster } from '#test/world/shown-cluster.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const prod = clusterName('prod');

/** A fleet of the cluster `prod` with these objects, and the findings of doctor. */
function examined(t: TestContext, shown: Shown) {
  const clock = new DrivenClock(NOW);
  const found = embeddedFleet(
    t,
    { clusters: ['prod'], clock },
    { cluster: async () => shownCluster(shown, clock.now()) },
  );
  const findings = (fleet = found.fleet) => examine(fleet, [prod], { clock, progress: () => undefined });
  return { ...found, clock, findings };
}

const about = (what: string, findings: Awaited<ReturnType<typeof examine>>) =>
  findings.filter((finding) => finding.check === what).map(({ verdict, message }) => [verdict, message]);

test('does not connect to a cluster with an agent and reports that as fine', async (t) => {
  const { fleet, findings } = examined(t, {});
  const registry = { get: async () => ({ name: prod, access: { kind: 'agent', agent: 'edge-1' } }) };
  const found = await findings({
    ...fleet,
    registry: { ...registry, list: async () => ({ clusters: [], strays: [] }) } as unknown as ClusterRegistry,
    cluster: () => assert.fail('nobody enters it'),
  });
  assert.deepEqual(about('connection', found), [
    [
      'ok',
      'Agent edge-1 runs in the cluster, which has no access from outside. To examine it, run taintward doctor --context NAME.',
    ],
  ]);
  assert.deepEqual(about('permissions', found), []);
});

test('warns once of each kind of ineffective toleration in workloads, and skips kinds that it may not read', async (t) => {
  const workload = (name: string, ...tolerations: readonly object[]) => ({
    metadata: { namespace: 'shop', name },
    spec: { template: { spec: { tolerations } } },
  });
  const limited = { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 };
  const { findings } = examined(t, {
    '/apis/apps/v1/deployments': [workload('web', limited), workload('api', limited), workload('db')],
    '/apis/apps/v1/daemonsets': [workload('agent', { ...limited, key: 'node.kubernetes.io/unreachable' })],
  });
  assert.deepEqual(about('tolerations', await findings()), [
    [
      'warn',
      'Deployment shop/web: tolerations[0] (maintenance:NoExecute for 30s) lasts 30s, but the scheduler ignores the duration: the replacement may be scheduled to the same node, and is evicted again after 30s. The same applies to 1 more workload.',
    ],
    [
      'warn',
      'DaemonSet shop/agent: tolerationSeconds of node.kubernetes.io/unreachable has no effect in a DaemonSet.',
    ],
  ]);
});

const enforced = async (fleet: Fleet, more = '') =>
  perform({ kind: 'apply-policy', cluster: prod, text: `mode: enforce\n${more}` }, await fleet.operator());

const atNodes = (spec: object): Shown => ({
  ...controllerManager('on'),
  ...Object.fromEntries(
    nodeTakeover(NODE_TAKEOVER)
      .filter(({ kind }) => kind.startsWith('Mutating'))
      .map((manifest) => [pathOf(manifest), manifest]),
  ),
  [TAKEOVER_PATH]: { metadata: { resourceVersion: '1' }, spec: { ...NODE_TAKEOVER, ...spec } },
});
const heartbeat = new Date(NOW - 10_000).toISOString();
const ALIVE = { heartbeat, aliveSince: heartbeat };
const VIRTUAL = `treatAsNoExecute: [${NODE_TAKEOVER.keys.join(', ')}]`;

test('reports an active takeover as fine', async (t) => {
  const { fleet, findings } = examined(t, atNodes(ALIVE));
  await enforced(fleet, VIRTUAL);
  const found = await findings();
  assert.deepEqual(about('takeover', found), [
    ['ok', 'The takeover is active: the built-in controller does not evict for its taints.'],
  ]);
  assert.match(
    String(about('built-in', found)),
    /^ok,Enabled .* does not evict for taints that are taken over\.$/,
  );
});

test('warns about a Kubernetes version that is not tested', async (t) => {
  for (const gitVersion of ['v1.36.3', 'v1.37.2-eks-1a2b3c4']) {
    const { findings } = examined(t, { '/version': { gitVersion } });
    assert.deepEqual(about('versions', await findings()), []);
  }
  for (const gitVersion of ['v1.35.9', 'v1.38.0', 'v1.3.7', 'v1.360.0']) {
    const { findings } = examined(t, { '/version': { gitVersion } });
    assert.deepEqual(about('versions', await findings()), [
      ['warn', `The cluster runs Kubernetes ${gitVersion}. This release is tested on 1.36 and 1.37 only.`],
    ]);
  }
});

test('goes on in a cluster that denies its version and access reviews', async (t) => {
  const { clock } = examined(t, {});
  const live = shownCluster(controllerManager('off'), clock.now(), (path) => path === '/version');
  const allowed = async () => {
    throw new ApiError('Cannot create selfsubjectaccessreviews: 403.', 403, 'Forbidden');
  };
  const api = Object.assign(live.api, { allowed, skewMs: undefined });
  const fleet = { kind: 'context', cluster: async () => ({ ...live, api }) } as unknown as ContextFleet;
  const found = await examine(fleet, [prod], { clock, progress: () => undefined });
  assert.deepEqual(
    found.filter(({ verdict }) => verdict === 'bad'),
    [],
  );
  assert.match(String(about('connection', found)), /^ok,Its API server \(unknown version\)/);
  assert.deepEqual(about('permissions', found), [
    [
      'warn',
      "The permissions of the credentials are not verified: they can't create selfsubjectaccessreviews.",
    ],
  ]);
  assert.match(String(about('built-in', found)), /^ok,Disabled/);
});

test('accepts credentials that can only read, unless the policy enforces', async (t) => {
  const { fleet, clock, findings } = examined(t, {});
  const live = shownCluster(controllerManager('off'), clock.now());
  const allowed = async ({ verb }: Permission) => ['get', 'list', 'watch'].includes(verb);
  const reading = {
    ...fleet,
    cluster: async () => ({ ...live, api: Object.assign(live.api, { allowed }) }),
  };
  assert.deepEqual(about('permissions', await findings(reading)), [
    [
      'ok',
      'The credentials have all permissions that observe mode needs. To evict, grant delete pods, patch pods/status, create events.',
    ],
  ]);
  await enforced(fleet);
  assert.equal(about('permissions', await findings(reading))[0]?.[0], 'bad');
});

test('README and the page on versions list the tested Kubernetes versions', () => {
  for (const page of ['README.md', 'docs/reference/kubernetes-versions.md']) {
    const text = readFileSync(join(import.meta.dirname, '../../../..', page), 'utf8');
    assert.match(text, new RegExp(`proven on Kubernetes ${PROVEN_KUBERNETES.join(' and ')}\\b`), page);
  }
});

test('checks the permissions of a takeover by resource name, if there is one', async (t) => {
  const { fleet, findings } = examined(t, atNodes(ALIVE));
  await enforced(fleet, VIRTUAL);
  const live = shownCluster(atNodes(ALIVE), NOW);
  const poor = {
    ...live,
    api: Object.assign(live.api, { allowed: async ({ name }: Permission) => name === undefined }),
  };
  assert.deepEqual(about('permissions', await findings({ ...fleet, cluster: async () => poor })).at(-1), [
    'warn',
    'The credentials cannot renew or verify the takeover: get takeovers live, patch takeovers live, create nodes taintward-takeover-proof, patch nodes taintward-takeover-proof.',
  ]);
});

test('reports a suspended takeover as ineffective before it expires', async (t) => {
  const { fleet, findings } = examined(t, atNodes({ ...ALIVE, withheld: 'a node kept its taint' }));
  await enforced(fleet);
  const found = await findings();
  assert.deepEqual(about('takeover', found), [
    [
      'bad',
      'The heartbeat is suspended because a node kept its taint. The built-in controller evicts once it expires.',
    ],
  ]);
  assert.match(String(about('built-in', found)), /^warn,Enabled .*, as Taintward is\. /);
});

test('reports an expired or incomplete takeover', async (t) => {
  const { findings } = examined(
    t,
    atNodes({ heartbeat: new Date(NOW + SHOWN_SKEW_MS - 100_000).toISOString() }),
  );
  assert.match(String(about('takeover', await findings())), /^bad,The heartbeat expired 10s ago\. /);
  const { [TAKEOVER_PATH]: _, ...half } = atNodes({});
  assert.deepEqual(about('takeover', await examined(t, half).findings()), [
    ['bad', 'Takeover live is missing, so the takeover has no effect. Apply or release the takeover again.'],
  ]);
});

test("warns of a clock of the API server's that differs by more than a second, in its direction", async (t) => {
  const { fleet, clock, findings } = examined(t, {});
  const found = async (skewMs: number) => {
    const live = shownCluster({}, clock.now());
    const cluster = async () => ({ ...live, api: Object.assign(live.api, { skewMs }) });
    return about('clocks', await findings({ ...fleet, cluster }));
  };
  const text = 'The clock of its API server is';
  assert.deepEqual(about('clocks', await findings()), [
    ['warn', `${text} 4000 ms ahead of the local clock.`],
  ]);
  assert.deepEqual(await found(-2_000), [['warn', `${text} 2000 ms behind the local clock.`]]);
  assert.deepEqual(await found(-900), [['ok', `${text} 900 ms behind the local clock.`]]);
});

test('reports a missing permission to read takeovers and continues', async (t) => {
  const { findings, fleet } = examined(t, {});
  const live = shownCluster(controllerManager('off'), NOW, (of) => of.includes('admissionregistration'));
  const found = await findings({ ...fleet, cluster: async () => live });
  assert.deepEqual(about('takeover', found), [
    ['ok', 'The credentials cannot read takeovers. The group taintward-viewer in cdk/rbac/operators can.'],
  ]);
  assert.equal(about('built-in', found).length, 1);
});

const WELL: Account = {
  release: async () => VERSION,
  quotas: async () => ({
    invocations: 1000,
    writesAtOnce: 4000,
    mostWrites: 40_000,
    batches: { 'node-delta': 20, 'pod-delta': 20, evict: 50 },
  }),
  alarms: async () => [{ name: 'a', state: 'OK', since: NOW, description: '', receivers: 1 }],
};
const ofAccount = (findings: Awaited<ReturnType<typeof examine>>) =>
  findings
    .filter(({ check }) => ['versions', 'quotas', 'alarms'].includes(check))
    .map(({ check, verdict }) => `${check} ${verdict}`);

test('checks releases, quotas for all nodes, and alarms of a deployment', async (t) => {
  const { fleet, leases, findings } = examined(t, {});
  const deployed: Fleet = { ...fleet, kind: 'deployed', account: WELL };
  assert.deepEqual(ofAccount(await findings(deployed)), [
    'versions ok',
    'quotas ok',
    'quotas ok',
    'alarms ok',
  ]);
  const lease = await leases.take(prod, undefined, 'relay-1', NOW);
  assert.ok(lease);
  await leases.renew(lease, { renewedAt: NOW, nodes: 30_000 });
  assert.deepEqual(ofAccount(await findings(deployed)), [
    ...['versions ok', 'quotas ok', 'quotas warn', 'quotas warn', 'alarms ok'],
  ]);
});

test('reports that no controller evicts when the built-in controller is off and the policy observes', async (t) => {
  const { findings } = examined(t, controllerManager('off'));
  const [[verdict, message] = []] = about('built-in', await findings());
  assert.equal(verdict, 'bad');
  assert.match(String(message), /the policy mode is observe: no controller evicts/);
});

test('reports unreadable rules as bad and continues', async (t) => {
  const { fleet, findings } = examined(t, controllerManager('off'));
  const rulesStore = Object.assign(Object.create(fleet.rulesStore), {
    fleetStop: async () => undefined,
    read: () => Promise.reject(new StoreError('The policy is of a newer release.')),
  });
  const found = await findings({ ...fleet, rulesStore });
  assert.ok(about('store', found).some(([, message]) => message === 'The policy is of a newer release.'));
  assert.equal(about('permissions', found)[0]?.[0], 'ok');
});

test('does not report a release for a lease without a holder', async (t) => {
  const { fleet, leases, findings } = examined(t, {});
  const lease = await leases.take(prod, undefined, 'relay-1', NOW);
  assert.ok(lease);
  await leases.release(lease);
  assert.equal(ofAccount(await findings({ ...fleet, kind: 'deployed', account: WELL }))[0], 'versions ok');
});

test('reports each inaccessible part of an account as one warning', async (t) => {
  const { fleet, findings } = examined(t, {});
  const refuse = () => Promise.reject(new FleetError("Can't read it from AWS."));
  const account: Account = { release: refuse, quotas: refuse, alarms: refuse };
  assert.deepEqual(ofAccount(await findings({ ...fleet, kind: 'deployed', account })), [
    ...['versions warn', 'quotas warn', 'alarms warn'],
  ]);
});

test('warns about a process of another release', async (t) => {
  const { fleet, findings } = examined(t, {});
  const running = (version: string) => async () => ({ version, startedAt: NOW, clusters: {}, queues: {} });
  const verdictOf = async (version: string) =>
    about('versions', await findings({ ...fleet, service: running(version) }))[0]?.[0];
  assert.deepEqual([await verdictOf(VERSION), await verdictOf('0.0.1')], ['ok', 'warn']);
});

test('reports an unresponsive cluster before it counts as disconnected', async (t) => {
  const { fleet, leases, findings } = examined(t, {});
  const lease = await leases.take(prod, undefined, 'relay-1', NOW);
  assert.ok(lease);
  const report = { renewedAt: NOW, lastContactAt: NOW, faults: [] };
  await leases.renew(lease, report);
  const relay = async () => about('relay', await findings({ ...fleet, kind: 'deployed' }));
  assert.deepEqual(await relay(), [['ok', 'Last contact 0s ago.']]);
  await leases.renew(lease, { ...report, breakerOpen: true });
  assert.deepEqual(await relay(), [
    ['bad', 'Its API server does not respond. Requests are retried every few seconds.'],
  ]);
});

test('reports a dead process as bad and omits its reports', async (t) => {
  const { leases, findings } = examined(t, {});
  const lease = await leases.take(prod, undefined, 'relay-1', NOW);
  assert.ok(lease);
  await leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW, faults: [] });
  const found = await findings();
  assert.equal(about('process', found)[0]?.[0], 'bad');
  assert.deepEqual(about('relay', found), []);
});

test('reports an invalid registration', async (t) => {
  const { fleet, findings } = examined(t, controllerManager('off'));
  const stray = 'The item NODE of x is not a valid cluster registration.';
  const registry = {
    get: async () => undefined,
    list: async () => ({ clusters: [], strays: [stray] }),
  } as unknown as ClusterRegistry;
  assert.deepEqual(about('registry', await findings({ ...fleet, registry })), [['bad', stray]]);
  assert.deepEqual(about('registry', await findings()), []);
});

test('checks the permission for the Eviction API only if the policy uses it', async (t) => {
  const { fleet, clock, findings } = examined(t, controllerManager('off'));
  const limited = {
    ...fleet,
    cluster: async () => {
      const live = shownCluster(controllerManager('off'), clock.now());
      const allowed: typeof live.api.allowed = async ({ resource }) => resource !== 'pods/eviction';
      return { ...live, api: Object.assign(live.api, { allowed }) };
    },
  };
  const verdicts = async () => about('permissions', await findings(limited)).map(([verdict]) => verdict);
  assert.deepEqual(await verdicts(), ['ok']);
  await perform(
    { kind: 'apply-policy', cluster: prod, text: 'mode: enforce\nmethod: evict\n' },
    await fleet.operator(),
  );
  assert.deepEqual(await verdicts(), ['bad']);
});

describe('permissions of a deployed evict', () => {
  const EKS = { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' } as const;
  /** A deployed fleet whose evict answers this, and whose caller lacks all permissions. */
  const deployed = (
    t: TestContext,
    answer: () => AccessAnswer,
    access: RegisteredCluster['access'] = EKS,
  ) => {
    const { fleet, clock, findings } = examined(t, controllerManager('off'));
    const questions: unknown[] = [];
    const registry = {
      get: async () => ({ name: prod, access }),
      list: async () => ({ clusters: [], strays: [] }),
    } as unknown as ClusterRegistry;
    const cluster: Fleet['cluster'] = async () => {
      const live = shownCluster(controllerManager('off'), clock.now());
      return { ...live, api: Object.assign(live.api, { allowed: async () => false }) };
    };
    const checkAccess: Fleet['checkAccess'] = async (question) => {
      questions.push(question);
      return answer();
    };
    const found = (more: Partial<Fleet> = {}) =>
      findings({ ...fleet, kind: 'deployed', registry, cluster, checkAccess, ...more });
    return { fleet, found, questions };
  };

  test('are reported as its own, whatever the caller may do', async (t) => {
    const { found, questions } = deployed(t, () => ({ reached: true, missing: [] }));
    assert.deepEqual(about('permissions', await found()), [
      ['ok', 'evict has all permissions that the service needs.'],
    ]);
    assert.deepEqual(questions, [{ name: prod, access: EKS, namespaces: [] }]);
  });

  test('are needed in the namespaces alone that include names', async (t) => {
    const missing = ['delete pods', 'create events', 'delete pods in team-b'];
    const { fleet, found, questions } = deployed(t, () => ({ reached: true, missing }));
    await enforced(fleet, 'include: [{namespaces: [team-a, team-b]}]');
    assert.deepEqual(about('permissions', await found()), [
      ['bad', 'evict lacks permissions that the service needs: delete pods in team-b.'],
    ]);
    missing.pop();
    missing.push('create events in team-b');
    assert.deepEqual(about('permissions', await found()), [
      ['ok', 'evict has all permissions that the service needs.'],
      ['warn', 'evict cannot create Events, so none report evictions.'],
    ]);
    questions.pop();
    assert.deepEqual(questions, [{ name: prod, access: EKS, namespaces: ['team-a', 'team-b'] }]);
  });

  test('are named one by one, with those that the policy needs', async (t) => {
    const missing = [
      'delete pods',
      'create pods/eviction',
      'get leases in kube-node-lease',
      'get replicasets',
    ];
    const { fleet, found } = deployed(t, () => ({ reached: true, missing }));
    await enforced(fleet, 'method: evict');
    assert.deepEqual(about('permissions', await found()), [
      ['bad', 'evict lacks permissions that the service needs: delete pods, create pods/eviction.'],
      ['warn', 'evict cannot read node Leases, which show whether an unreachable node is alive.'],
    ]);
  });

  test('are bad where evict cannot work, although the caller reaches the cluster', async (t) => {
    const { found } = deployed(t, () => ({ reached: false, reason: 'The credentials were rejected.' }));
    const all = await found();
    assert.deepEqual(about('permissions', all), [
      ['bad', 'evict cannot work in the cluster: The credentials were rejected.'],
    ]);
    assert.equal(about('connection', all)[0]?.[0], 'ok');
  });

  test('are reported for a cluster that the caller cannot reach', async (t) => {
    const { found } = deployed(t, () => ({ reached: true, missing: [] }));
    const all = await found({ cluster: () => Promise.reject(new FleetError('It is private.')) });
    assert.deepEqual(about('connection', all), [['bad', 'It is private.']]);
    assert.equal(about('permissions', all)[0]?.[0], 'ok');
  });

  test('are not verified if the caller may not invoke it', async (t) => {
    const { found } = deployed(t, () => {
      throw new FleetError('Check your permission lambda:InvokeFunction.');
    });
    assert.deepEqual(about('permissions', await found()), [
      ['warn', 'The permissions of evict are not verified: Check your permission lambda:InvokeFunction.'],
    ]);
  });

  test('are not asked for in a cluster with an agent', async (t) => {
    const access = { kind: 'agent', agent: 'edge-1' } as const;
    const { found, questions } = deployed(t, () => assert.fail('evict was asked'), access);
    assert.deepEqual([about('permissions', await found()), questions], [[], []]);
  });
});

describe("permissions of an in-cluster service's account", () => {
  const NEEDED = 'ServiceAccount evictions/taintward';
  const inCluster = (
    t: TestContext,
    answer: (right: Permission & { readonly subresource: string }) => boolean,
    shown: Shown = {},
  ) => {
    const { fleet, clock, findings } = examined(t, shown);
    const inputs: object[] = [];
    const create = async (path: string, body: object) => {
      assert.equal(path, '/apis/authorization.k8s.io/v1/subjectaccessreviews');
      inputs.push(body);
      const { resourceAttributes } = (body as { readonly spec: { readonly resourceAttributes: Permission } })
        .spec;
      return {
        status: { allowed: answer(resourceAttributes as Permission & { readonly subresource: string }) },
      };
    };
    const found = () =>
      findings({
        ...fleet,
        serviceAccount: { namespace: 'evictions', name: 'taintward' },
        cluster: async () => {
          const live = shownCluster(shown, clock.now());
          const allowed = () => assert.fail('the caller was examined');
          Object.assign(live.objects, { create });
          return { ...live, api: Object.assign(live.api, { allowed }) };
        },
      });
    return { fleet, inputs, found };
  };

  test('are complete', async (t) => {
    const { inputs, found } = inCluster(t, () => true);
    assert.deepEqual(about('permissions', await found()), [
      ['ok', `${NEEDED} has all permissions that the service needs.`],
    ]);
    assert.deepEqual(inputs[0], {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: 'system:serviceaccount:evictions:taintward',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:evictions', 'system:authenticated'],
        resourceAttributes: { verb: 'list', resource: 'nodes', subresource: '' },
      },
    });
  });

  test('lack some, including some that the policy needs', async (t) => {
    const { fleet, found } = inCluster(
      t,
      ({ verb, resource, subresource }) =>
        verb !== 'delete' && subresource !== 'eviction' && resource !== 'leases',
    );
    await perform(
      { kind: 'apply-policy', cluster: prod, text: 'mode: enforce\nmethod: evict\n' },
      await fleet.operator(),
    );
    assert.deepEqual(about('permissions', await found()), [
      ['bad', `${NEEDED} lacks permissions that the service needs: delete pods, create pods/eviction.`],
      ['warn', `${NEEDED} cannot read node Leases, which show whether an unreachable node is alive.`],
    ]);
  });

  test("can't be reviewed by the caller, who gets a remedy", async (t) => {
    const { found } = inCluster(t, () => {
      throw new ApiError('Cannot create subjectaccessreviews: 403.', 403, 'Forbidden');
    });
    const all = (await found()).filter(({ check }) => check === 'permissions');
    assert.deepEqual(
      all.map(({ verdict, message, remediation }) => [verdict, message, remediation]),
      [
        [
          'warn',
          `The permissions of ${NEEDED} are not verified: your credentials can't create subjectaccessreviews.`,
          'Run this command as a cluster administrator, or run kubectl auth can-i --list --as system:serviceaccount:evictions:taintward. If the service lacks permissions, taintward status says so.',
        ],
      ],
    );
  });

  test('lack the renewal of a takeover', async (t) => {
    const lacks = inCluster(t, ({ name }) => name === undefined, atNodes(ALIVE));
    await enforced(lacks.fleet, VIRTUAL);
    assert.match(
      String(about('permissions', await lacks.found()).at(-1)),
      /^warn,ServiceAccount evictions\/taintward cannot renew or verify the takeover: get takeovers live, /,
    );
    const hidden = inCluster(
      t,
      () => {
        throw new ApiError('Cannot create subjectaccessreviews: 403.', 403, 'Forbidden');
      },
      atNodes(ALIVE),
    );
    assert.equal(about('permissions', await hidden.found()).length, 1);
  });

  test('are unknown when the API server fails', async (t) => {
    const { found } = inCluster(t, () => {
      throw new ApiError('Cannot create subjectaccessreviews: 500.', 500, 'InternalError');
    });
    assert.deepEqual(about('permissions', await found()), [
      ['bad', 'Cannot create subjectaccessreviews: 500.'],
    ]);
  });
});

test('warns about missing permissions for node Leases', async (t) => {
  const { fleet, clock, findings } = examined(t, controllerManager('off'));
  const limited = {
    ...fleet,
    cluster: async () => {
      const live = shownCluster(controllerManager('off'), clock.now());
      const allowed: typeof live.api.allowed = async ({ resource }) => resource !== 'leases';
      return { ...live, api: Object.assign(live.api, { allowed }) };
    },
  };
  const [fine, hint] = about('permissions', await findings(limited));
  assert.equal(fine?.[0], 'ok');
  assert.equal(hint?.[0], 'warn');
  assert.match(String(hint?.[1]), /cannot read node Leases/);
  assert.equal(about('permissions', await findings()).length, 1);
  const operator = await fleet.operator();
  await perform(
    { kind: 'apply-policy', cluster: prod, text: 'mode: enforce\nrequireExpiredLease: false\n' },
    operator,
  );
  assert.equal(about('permissions', await findings(limited)).length, 1);
});
