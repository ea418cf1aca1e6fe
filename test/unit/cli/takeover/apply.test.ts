import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { applyAll, mustWork } from '#functions/cli/takeover/apply-command.ts';
import { TAKEOVER_RULES } from '#functions/cli/takeover/permissions.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { NODE_TAKEOVER, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import type { RegisteredCluster } from '#shared/state/registry.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import {
  type Answer,
  json,
  type Received,
  scriptedServer,
  status,
} from '#test/unit/kubernetes/scripted-server.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOTHING = status(404, 'NotFound', 'not found');
const POLICIES = json({ resources: [{ name: 'mutatingadmissionpolicies' }] });
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const BINDING = `${ADMISSION}/mutatingadmissionpolicybindings/taintward-takeover-nodes`;
const DENIED = status(403, 'Forbidden', 'no discovery for you');
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** Runs `taintward takeover …` on a cluster that answers by path, and with an empty answer for other paths. */
async function commandLine(t: TestContext, answers: Readonly<Record<string, (request: Received) => Answer>>) {
  const { host, requests } = await scriptedServer(t, (response, request) => {
    const path = request.url.split('?')[0] ?? '';
    const answer = answers[`${request.method} ${path}`] ?? answers[path];
    (answer?.(request) ?? NOTHING)(response, request);
  });
  let printed = '';
  const audited: string[] = [];
  const complained: string[] = [];
  const accesses: unknown[] = [];
  const clock = new DrivenClock(Date.UTC(2026, 0, 1));
  const note = async ({ cluster, kind, message }: AuditEntry) => {
    audited.push([cluster, kind, message].join(': '));
  };
  const operator = async () => ({ rulesStore: { note }, clock, actor: 'anna' });
  const managing = {
    kind: 'local',
    operator,
    close: () => undefined,
    manages: async (name: string) => name === 'managed',
  };
  const deps = {
    fleet: () => ({ registry: { get: async () => undefined }, close: () => undefined }),
    live: async () => managing,
    connect: (cluster?: RegisteredCluster) => {
      accesses.push(cluster?.access);
      return { host, requestOptions: async () => ({ server: new URL(`http://${host}`), headers: {} }) };
    },
    clock,
    progress: () => undefined,
    complain: (text: string) => complained.push(text),
    print: (text: string) => {
      printed += text;
    },
  };
  const run = (...args: readonly string[]) =>
    createProgram(deps as unknown as CliDeps).parseAsync(['takeover', ...args], { from: 'user' });
  const wrote = () =>
    requests
      .filter(({ method, url }) => method !== 'GET' && !url.includes('dryRun') && !url.startsWith(REVIEWS))
      .map(({ method, url }) => `${method} ${url.split('?')[0]}`);
  const objects = () => new ClusterObjects(deps.connect() as unknown as Connection);
  return { run, wrote, audited, complained, accesses, printed: () => printed, objects, clock: deps.clock };
}

const allowed =
  (isAllowed: (attributes: Readonly<Record<string, string>>) => boolean) => (request: Received) => {
    const { resourceAttributes } = JSON.parse(request.body).spec;
    return json({ status: { allowed: isAllowed(resourceAttributes) } }, 201);
  };
const ABLE = { [ADMISSION]: () => POLICIES, [REVIEWS]: allowed(() => true) };

describe('taintward takeover accepts exactly one cluster', () => {
  for (const args of [
    ['status'],
    ['status', 'c1', '--context', 'x'],
    ['release'],
    ['apply', 'c1', '--context', 'x'],
  ]) {
    test(args.join(' '), async (t) => {
      const { run } = await commandLine(t, {});
      await assert.rejects(run(...args), /Specify either a registered cluster/);
    });
  }

  test('of the kubeconfig that is named', async (t) => {
    const { run, accesses } = await commandLine(t, {});
    await run('status', '--context=x', '--kubeconfig=f').catch(() => undefined);
    assert.deepEqual(accesses, [{ kind: 'local-context', context: 'x', kubeconfig: 'f' }]);
  });

  test('rejects an unknown cluster', async (t) => {
    const { run } = await commandLine(t, {});
    await assert.rejects(run('status', 'c9'), /Cluster "c9" not found/);
    await assert.rejects(run('status', 'c9', '--kubeconfig', 'f'), /--kubeconfig requires --context/);
  });
});

describe('apply writes nothing', () => {
  test('to a server that does not serve the policies', async (t) => {
    const { run, wrote } = await commandLine(t, {
      [ADMISSION]: () => json({ resources: [{ name: 'validatingadmissionpolicies' }] }),
      '/version': () => json({ gitVersion: 'v1.33.4' }),
    });
    await assert.rejects(
      run('apply', '--context', 'x'),
      /\(v1\.33\.4\) does not serve MutatingAdmissionPolicy v1, which came with Kubernetes 1\.36\. Disable /,
    );
    assert.deepEqual(wrote(), []);
  });

  test('to a server that shows by its response that it does not serve the policies, without discovery', async (t) => {
    const NO_KIND = status(404, 'NotFound', 'the server could not find the requested resource');
    const { run, wrote } = await commandLine(t, {
      [ADMISSION]: () => DENIED,
      [BINDING]: () => NO_KIND,
      '/version': () => DENIED,
    });
    await assert.rejects(run('apply', '--context', 'x'), /\(unknown version\) does not serve Mutating/);
    assert.deepEqual(wrote(), []);
  });

  test('without all required permissions', async (t) => {
    const { run, wrote } = await commandLine(t, {
      ...ABLE,
      [REVIEWS]: allowed(({ resource, verb }) => resource !== 'takeovers' || verb === 'get'),
    });
    await assert.rejects(
      run('apply', '--context', 'x'),
      /cdk\/rbac\/operators\/admin\.yaml grants: create takeovers, patch takeovers, delete takeovers\./,
    );
    assert.deepEqual(wrote(), []);
  });
});

const LIVE = '/apis/taintward.dev/v1/takeovers/live';
const PROOF = 'PATCH /api/v1/nodes/taintward-takeover-proof';
const HASTE = { proofs: 3, everyMs: 0, withinMs: 0 };
const HEARTBEAT = '2026-01-01T00:00:00Z';
/** A cluster in which the objects of a takeover are applied. */
const APPLIED = {
  ...ABLE,
  ...Object.fromEntries(
    [
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/takeovers.taintward.dev',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/taintward-takeover',
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/taintward-takeover',
      `${ADMISSION}/mutatingadmissionpolicies/taintward-takeover-nodes`,
      BINDING,
      LIVE,
    ].map((path) => [`PATCH ${path}`, () => json({})]),
  ),
  [`GET ${LIVE}`]: () =>
    json({ metadata: { resourceVersion: '1' }, spec: { ...NODE_TAKEOVER, heartbeat: HEARTBEAT } }),
};

/** Answers a dry-run node: with all of its taints, or, if the takeover works, without the taints added at the heartbeat's time. */
const writtenNode =
  (works: () => boolean) =>
  ({ body }: Received) => {
    const { metadata, spec } = JSON.parse(body);
    const worksNow = works();
    const taints = (spec.taints as { key: string; effect: string; timeAdded: string }[]).filter(
      ({ key, effect, timeAdded }) =>
        !worksNow ||
        effect !== 'NoExecute' ||
        !NODE_TAKEOVER.keys.includes(key) ||
        Date.parse(timeAdded) !== Date.parse(HEARTBEAT),
    );
    return json({ metadata, spec: { taints } }, 201);
  };

test('applies the heartbeat once the API server serves its kind, even if it already serves other kinds of the group', async (t) => {
  let tries = 0;
  const { objects, wrote } = await commandLine(t, {
    ...APPLIED,
    '/apis/taintward.dev/v1': () => json({ resources: [{ name: 'nodeevictions' }] }),
    [`PATCH ${LIVE}`]: () => {
      tries += 1;
      return tries < 3 ? NOTHING : json({});
    },
  });
  await applyAll(objects(), nodeTakeover(NODE_TAKEOVER));
  assert.equal(tries, 3);
  assert.match(wrote().at(-1) ?? '', /mutatingadmissionpolicybindings/);
});

describe('a dry run', () => {
  const dryRun = ['--context', 'managed', '--dry-run', '-o', 'json'];

  test('of apply needs no discovery if the response for an object shows that its kind is served', async (t) => {
    const name = 'taintward-takeover-nodes';
    const { run, printed } = await commandLine(t, {
      ...APPLIED,
      [ADMISSION]: () => DENIED,
      [`GET ${BINDING}`]: () =>
        status(404, 'NotFound', `mutatingadmissionpolicybindings "${name}" not found`),
    });
    await run('apply', ...dryRun);
    assert.match(printed(), /"create",\s*"object": "MutatingAdmissionPolicyBinding/);
  });

  test('of apply lists the objects that it would write, after its checks', async (t) => {
    const { run, wrote, audited, printed } = await commandLine(t, {
      ...APPLIED,
      [`GET ${BINDING}`]: () => json({}),
    });
    await run('apply', ...dryRun);
    const [{ change, objects }] = JSON.parse(printed());
    assert.equal(change, 'The takeover is applied to the cluster.');
    assert.deepEqual(objects, [
      { action: 'create', object: 'CustomResourceDefinition takeovers.taintward.dev' },
      { action: 'update', object: 'Takeover live' },
      { action: 'create', object: 'ClusterRole taintward-takeover' },
      { action: 'create', object: 'ClusterRoleBinding taintward-takeover' },
      { action: 'create', object: 'MutatingAdmissionPolicy taintward-takeover-nodes' },
      { action: 'update', object: 'MutatingAdmissionPolicyBinding taintward-takeover-nodes' },
    ]);
    assert.deepEqual([wrote(), audited], [[], []]);
  });

  test('of apply is rejected where apply would be', async (t) => {
    const { run } = await commandLine(t, { ...ABLE, [REVIEWS]: allowed(() => false) });
    await assert.rejects(run('apply', ...dryRun), /lack permissions/);
  });

  test('of release lists the objects that it would delete', async (t) => {
    const { run, wrote, audited, printed } = await commandLine(t, {
      [`GET ${BINDING}`]: () => json({}),
    });
    await run('release', ...dryRun);
    assert.deepEqual(JSON.parse(printed())[0].objects, [
      { action: 'delete', object: 'MutatingAdmissionPolicyBinding taintward-takeover-nodes' },
    ]);
    assert.deepEqual([wrote(), audited], [[], []]);
  });

  test('of release without a takeover prints that nothing would change', async (t) => {
    const { run, printed } = await commandLine(t, {});
    await run('release', '--context', 'x', '--dry-run');
    assert.equal(printed(), 'Dry run: nothing would change.\n');
  });
});

test('verifies a takeover by several consecutive proofs, because the previous policy may have answered the first', async (t) => {
  let tries = 0;
  const { objects, clock, wrote } = await commandLine(t, {
    ...APPLIED,
    // Each successful proof takes three requests.
    [PROOF]: writtenNode(() => {
      tries += 1;
      return tries !== 7;
    }),
  });
  await mustWork(objects(), { clock, progress: () => undefined }, { ...HASTE, withinMs: 60_000 });
  assert.deepEqual([tries, wrote()], [7 + 3 * HASTE.proofs, []]);
});

describe('an unverified takeover is unbound with the reason', () => {
  const rows: readonly (readonly [when: string, answer: (request: Received) => Answer, message: RegExp])[] = [
    ['when it keeps nothing out', writtenNode(() => false), /kept node.kubernetes.io\/not-ready:NoExecute/],
    [
      'when it keeps out what it ought not to',
      ({ body }) => json({ ...JSON.parse(body), spec: {} }, 201),
      /lost node.kubernetes.io\/not-ready:NoSchedule/,
    ],
    [
      'when a node cannot be written by dry run',
      () => status(400, 'BadRequest', 'a webhook does not support dry run'),
      /the takeover couldn't be verified: .*a webhook does not support dry run/,
    ],
  ];
  for (const [when, answer, message] of rows) {
    test(when, async (t) => {
      const { objects, clock, wrote } = await commandLine(t, {
        ...APPLIED,
        [PROOF]: answer,
        [`DELETE ${BINDING}`]: () => json({}),
      });
      await assert.rejects(mustWork(objects(), { clock, progress: () => undefined }, HASTE), (error) => {
        assert.ok(error instanceof CliError);
        assert.match(error.message, /^Not applied, because .* so the built-in controller evicts as before/);
        assert.match(error.message, message);
        return true;
      });
      assert.deepEqual(wrote(), [`DELETE ${BINDING}`]);
    });
  }
});

test('requests only permissions that the role grants', () => {
  const verbs = TAKEOVER_RULES.flatMap(({ verbs: all }) => [...all]);
  assert.ok(verbs.every((verb) => ['get', 'list', 'create', 'patch', 'delete'].includes(verb)));
});

test('audits the release of a takeover in the fleet that manages the cluster', async (t) => {
  let isThere = true;
  const { run, audited, complained, printed } = await commandLine(t, {
    [`DELETE ${BINDING}`]: () => {
      const answer = isThere ? json({}) : NOTHING;
      isThere = false;
      return answer;
    },
  });
  await run('release', '--context', 'managed');
  await run('release', '--context', 'managed');
  assert.deepEqual(complained, ['Fleet: context managed\n', 'Fleet: context managed\n']);
  assert.deepEqual(audited, ['managed: takeover-released: released the takeover']);
  assert.match(printed(), /^Released\. .*\nNo takeover is installed\.\n$/);
});
