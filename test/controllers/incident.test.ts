import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { freePort } from '#test/aws/server-process.ts';
import { BusySite, TOLERATED_SECONDS } from '#test/cluster/rig/busy-site.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { type KubeconfigEntry, kubeconfigText } from '#test/cluster/rig/kubeconfig.ts';
import { NpmService, taintwardIn } from '#test/cluster/rig/npm-service.ts';
import { momentComes } from '#test/cluster/rig/on-time.ts';
import { runName } from '#test/cluster/rig/test-cluster.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';
import type { Outcome } from '#test/world/child.ts';

/*
 * An incident of two clusters, as their operators live through it: `npm start` and `npx taintward` from outside. What is
 * right is judged by exit codes, by `-o json`, and by what becomes of pods, never by sentences.
 */

const EU = 'prod-eu';
const US = 'prod-us';
/** The colleague's taint. */
const MAINTENANCE = 'maintenance';
/** Pods per second, of any kind. */
const RATE = 20;
const POLICY = `mode: enforce\nevictionRate: ${RATE}\nreleaseRate: ${RATE}\n`;
/** How long the API server is away. The incident that this file repeats had two minutes of it. */
const OUTAGE_MS = Number(process.env['INCIDENT_OUTAGE_SECONDS'] ?? 25) * 1000;
/** The next try is at most this long after the first answer of the API server. */
const BACK_WITHIN_MS = 5_000;
/** The time that the calls of a try take on a busy machine. */
const CALLS_MS = 2_000;
/** The time for which pods must stay that a wrong program would evict at once. */
const STAY_MS = 6_000;
/** Nodes that were down or tainted come back, and go again after this time: well before the guard resets. */
const AGAIN_AFTER_MS = 20_000;
/** The guard resets after this time of recovery. */
const RESETS_WITHIN_MS = 5 * 60_000;
/** The time in which a command shows what just happened. */
const SHOWN_WITHIN_MS = 20_000;
/** The time in which `npm start` ends: less than supervisors wait. */
const ENDS_WITHIN_MS = 20_000;

const Trip = z.looseObject({
  scope: z.string(),
  zone: z.string().optional(),
  trippedAt: z.iso.datetime(),
  nodes: z.int(),
  affectedNow: z.int().optional(),
  resetsAt: z.iso.datetime().optional(),
});
const ClusterStatus = z.looseObject({
  cluster: z.string(),
  pending: z.int().optional(),
  held: z.int().optional(),
  policyRevision: z.int().optional(),
  trips: z.array(Trip).default([]),
  releasedScopes: z.array(z.looseObject({ scope: z.string() })).default([]),
  stop: z.looseObject({ scope: z.string() }).optional(),
});
type ClusterStatus = z.infer<typeof ClusterStatus>;
const Status = z.looseObject({ clusters: z.array(ClusterStatus), process: z.string().optional() });
const Previews = z.array(
  z.looseObject({
    cluster: z.string(),
    pods: z.object({ evictedNow: z.int(), evictedWhenDue: z.int(), held: z.int() }),
  }),
);
const Pending = z.array(z.looseObject({ pod: z.string(), uid: z.string() }));
const History = z.array(z.looseObject({ uid: z.string().optional(), event: z.string().optional() }));

const closing = new AsyncDisposableStack();
let eu: BusySite;
let us: BusySite;

before(async () => {
  const run = runName();
  const sites = await Promise.allSettled([
    BusySite.open('KUBECONFIG', run, closing),
    BusySite.open('KUBECONFIG_2', run, closing),
  ]);
  [eu, us] = sites.map((site) => {
    if (site.status === 'rejected') throw site.reason;
    return site.value;
  }) as [BusySite, BusySite];
});
afterEach(() => {
  eu.check();
  us.check();
});
after(() => closing.disposeAsync());

/** An operator in the directory of a running service. */
class Desk {
  readonly dir: string;
  readonly #contexts: readonly string[];
  readonly #args: readonly string[];
  service: NpmService | undefined;

  private constructor(dir: string, contexts: readonly string[], args: readonly string[]) {
    this.dir = dir;
    this.#contexts = contexts;
    this.#args = args;
  }

  /** Restores the first state of the clusters, and starts a service on them; by default on prod-eu in enforce mode. */
  static async open(
    t: { after(end: () => Promise<void>): void },
    sites: Readonly<Record<string, BusySite>> = { [EU]: eu },
    policy: string | undefined = POLICY,
  ): Promise<Desk> {
    await Promise.all([eu.calm(), us.calm()]);
    const dir = mkdtempSync(join(tmpdir(), 'taintward-incident-'));
    const contexts = Object.keys(sites);
    const entries = contexts.map((context) => (sites[context] ?? eu).entry(context));
    const desk = new Desk(dir, contexts, [
      ...(await contextArgs(dir, entries)),
      ...(policy === '' ? [] : ['--policy', fileIn(dir, 'policy.yaml', policy)]),
    ]);
    t.after(() => desk.#close());
    await desk.start();
    return desk;
  }

  /** Starts `npm start` with the same arguments as before. */
  async start(): Promise<void> {
    this.service = await NpmService.start(this.dir, this.#contexts, this.#args);
  }

  get running(): NpmService {
    return this.service ?? assert.fail('no service was started');
  }

  /** Runs `npx taintward …`. */
  run(...args: readonly string[]): Promise<Outcome> {
    return taintwardIn(this.dir, args);
  }

  /** Runs a command that must succeed. */
  async order(...args: readonly string[]): Promise<void> {
    const { code, err } = await this.run(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${err}`);
  }

  async read<T>(schema: z.ZodType<T>, ...args: readonly string[]): Promise<{ code: number; data: T }> {
    const { code, out, err } = await this.run(...args, '-o', 'json');
    assert.ok(out !== '', `${args.join(' ')} ended with ${code}: ${err}`);
    return { code, data: schema.parse(JSON.parse(out)) };
  }

  /** Returns the exit code of `status`, and what it shows of a cluster. */
  async status(cluster = EU): Promise<ClusterStatus & { readonly code: number }> {
    const { code, data } = await this.read(Status, 'status');
    const found = data.clusters.find((each) => each.cluster === cluster);
    return { code, ...(found ?? assert.fail(`status shows no ${cluster}`)) };
  }

  /** Waits until `status` shows something of a cluster. */
  untilShown(
    what: string,
    isIt: (status: ClusterStatus & { readonly code: number }) => boolean,
    cluster = EU,
  ) {
    const find = async () => {
      const status = await this.status(cluster);
      return isIt(status) && status;
    };
    return until(`status shows ${what}`, find, SHOWN_WITHIN_MS);
  }

  /** Returns the pods of a cluster's pending evictions, by UID. */
  async pending(cluster = EU): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>> {
    const { data } = await this.read(Pending, 'pending', cluster);
    return new Map(data.map((each) => [each.uid, each]));
  }

  async #close(): Promise<void> {
    await this.service?.kill();
    rmSync(this.dir, { recursive: true });
  }
}

/** Writes a file; returns its path. */
function fileIn(dir: string, name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

async function contextArgs(dir: string, entries: readonly KubeconfigEntry[]): Promise<readonly string[]> {
  const kubeconfig = fileIn(dir, 'kubeconfig', await kubeconfigText(entries));
  return ['--kubeconfig', kubeconfig, ...entries.flatMap(({ context }) => ['--context', context])];
}

/** Returns the tripped scopes: zones by name. */
const tripped = ({ trips }: ClusterStatus): readonly string[] =>
  trips.map(({ scope, zone }) => zone ?? scope).sort();

const evictedOf = (pods: readonly PodLife[]): readonly PodLife[] =>
  pods.filter(({ evictedAt }) => evictedAt !== undefined);

const untilEvicted = (what: string, pods: readonly PodLife[]): Promise<unknown> =>
  until(`${what} are evicted`, () => evictedOf(pods).length === pods.length);

/** Waits for a time in which these pods must stay, from now or from when they are due. */
async function assertStay(pods: readonly PodLife[], ms = STAY_MS): Promise<void> {
  assert.notEqual(pods.length, 0);
  await momentComes(Date.now() + ms);
  assertUntouched(...pods);
}

/** Fails if the API server received more deletes in a second of its clock than the rate allows. */
function assertRate(pods: readonly PodLife[]): void {
  const seconds = Map.groupBy(evictedOf(pods), ({ name, deletedIn }) => {
    assert.ok(deletedIn, `${name} was deleted at no known time`);
    return deletedIn;
  });
  const most = Math.max(0, ...[...seconds.values()].map(({ length }) => length));
  assert.ok(most <= RATE, `${most} pods were evicted within a second`);
}

test('a zone outage trips the guard, which holds all pods', async (t) => {
  const desk = await Desk.open(t);
  const zone = eu.zones('a');
  const pods = eu.podsOn(zone);
  await eu.failNodes(zone);
  const trippedAt = Date.now();
  const status = await desk.untilShown('the trips', (each) => tripped(each).join() === 'a,cluster');
  assert.equal(status.code, 2);
  await momentComes(trippedAt + TOLERATED_SECONDS * 1000);
  await assertStay(pods);
  const held = await desk.untilShown('the held pods', (each) => each.held === pods.length);
  assert.equal(held.pending, pods.length);
  await eu.reviveNodes(zone);
  const calm = await desk.untilShown(
    'no pending evictions, and the time of each reset',
    ({ pending, trips }) =>
      pending === 0 &&
      trips.every(({ affectedNow, resetsAt }) => affectedNow === 0 && resetsAt !== undefined),
  );
  assert.deepEqual(tripped(calm), ['a', 'cluster']);
  for (const { nodes, resetsAt = '' } of calm.trips) {
    assert.ok(nodes > 0, 'the number at the trip stays');
    assert.ok(Date.parse(resetsAt) - Date.now() <= RESETS_WITHIN_MS);
  }
  await assertStay(pods);
});

test('the guard of one scope is released while another holds on', async (t) => {
  const desk = await Desk.open(t);
  await eu.failNodes(eu.zones('a'));
  await desk.untilShown('the trips of the outage', (each) => tripped(each).join() === 'a,cluster');
  const wrong = [...eu.zones('a').slice(0, 4), ...eu.zones('b', 'c')];
  const pods = eu.podsOn(eu.zones('b', 'c'));
  const down = eu.podsOn(eu.zones('a').slice(4));
  await eu.taint(wrong, MAINTENANCE, 'now');
  const all = await desk.untilShown('all trips', ({ trips }) => trips.length === 3);
  assert.deepEqual(tripped(all).slice(0, 2), ['a', 'cluster']);
  const trippedAt = Date.parse(all.trips.find(({ scope }) => scope === 'customTaints')?.trippedAt ?? '');
  const lost = evictedOf(pods);
  t.diagnostic(`${lost.length} of ${pods.length} pods were lost to the wrong taint`);
  assert.deepEqual(
    lost.filter(({ deletedIn = Infinity }) => deletedIn * 1_000 > trippedAt + 1_000),
    [],
    'evicted after the guard tripped',
  );
  // A pod that was marked just before the trip stays, and its mark does, too.
  const left = pods.filter(({ evictedAt }) => evictedAt === undefined);
  await assertStay(left.filter(({ disruption }) => disruption === undefined));
  assert.deepEqual(evictedOf(left), []);

  await desk.order('release', 'guard', EU, '--scope', 'customTaints', '--reason', 'the colleague means it');
  await untilEvicted('the pods of the released scope', pods);
  await assertStay(down);
  assert.deepEqual(tripped(await desk.status()), ['a', 'cluster']);
  assertRate([...eu.cluster.witness.pods.values()]);

  // The same taint on the same nodes again.
  await eu.untaint(wrong, MAINTENANCE);
  const untaintedAt = Date.now();
  await until('replacements run', () => eu.podsOn(eu.zones('b', 'c')).length >= pods.length);
  await momentComes(untaintedAt + AGAIN_AFTER_MS);
  const replacements = eu.podsOn(eu.zones('b', 'c'));
  const againAt = Date.now();
  await eu.taint(wrong, MAINTENANCE, 'now');
  await untilEvicted('the replacements', replacements);
  assertRate([...eu.cluster.witness.pods.values()].filter(({ evictedAt = 0 }) => evictedAt >= againAt));
  assert.deepEqual(tripped(await desk.status()), ['a', 'cluster']);
  assertUntouched(...down);
});

test('a guard that was released holds nothing when the same nodes are down again 20 s later', async (t) => {
  const desk = await Desk.open(t);
  const zone = eu.zones('a');
  const pods = eu.podsOn(zone);
  await eu.failNodes(zone);
  await desk.untilShown('the trips', (each) => tripped(each).join() === 'a,cluster');
  for (const scope of ['zone/a', 'cluster'])
    await desk.order('release', 'guard', EU, '--scope', scope, '--reason', 'the zone is lost');
  await untilEvicted('the pods of the zone', pods);
  assertRate(pods);
  const { releasedScopes } = await desk.status();
  assert.deepEqual(releasedScopes.map(({ scope }) => scope).sort(), ['cluster', 'zone/a']);
  await eu.reviveNodes(zone);
  const revivedAt = Date.now();
  await eu.calm();
  await momentComes(revivedAt + AGAIN_AFTER_MS);
  const again = eu.podsOn(zone);
  await eu.failNodes(zone);
  await untilEvicted('the pods of the same nodes', again);
  assertRate(again);
  assert.deepEqual(tripped(await desk.status()), []);
});

test('a policy that turns the guard off is refused without --yes, and then does what its preview counted', async (t) => {
  const desk = await Desk.open(t, { [EU]: eu }, '');
  await desk.order('policy', 'apply', EU, '-f', fileIn(desk.dir, 'on.yaml', POLICY), '--yes');
  const zone = eu.zones('a');
  const pods = eu.podsOn(zone);
  const others = eu.podsOn(eu.zones('b', 'c'));
  await eu.failNodes(zone);
  await desk.untilShown('the held pods', ({ held }) => held === pods.length);
  const { policyRevision } = await desk.status();
  const apply = ['policy', 'apply', EU, '-f', fileIn(desk.dir, 'off.yaml', `${POLICY}guard: off\n`)];

  const preview = await desk.read(Previews, ...apply, '--dry-run');
  assert.equal(preview.code, 0);
  assert.deepEqual(
    preview.data.map((each) => each.pods),
    [{ evictedNow: pods.length, evictedWhenDue: 0, held: 0 }],
  );
  assert.notEqual((await desk.run(...apply)).code, 0);
  await assertStay(pods);
  assert.equal((await desk.status()).policyRevision, policyRevision);

  await desk.order(...apply, '--yes');
  await untilEvicted('the counted pods', pods);
  assertRate(pods);
  assertUntouched(...others);
});

test('one cluster is resumed after a stop of all', async (t) => {
  const desk = await Desk.open(t, { [EU]: eu, [US]: us });
  await desk.order('stop', '--all');
  await desk.running.untilStopped([EU, US]);
  const [inEu, inUs] = await Promise.all(
    [eu, us].map(async (site) => {
      const nodes = site.nodes.slice(0, 2);
      const pods = site.podsOn(nodes);
      await site.taint(nodes, MAINTENANCE, 'now');
      return pods;
    }),
  );
  assert.ok(inEu && inUs);
  await assertStay([...inEu, ...inUs]);
  for (const cluster of [EU, US]) {
    const { code, stop, pending } = await desk.status(cluster);
    assert.equal(code, 2);
    assert.ok(stop, `status shows no stop of ${cluster}`);
    assert.equal(pending, inEu.length);
  }

  await desk.order('resume', EU, '--reason', 'it is over in Europe');
  await untilEvicted('the pods of the resumed cluster', inEu);
  assert.equal((await desk.status(EU)).stop, undefined);
  const other = await desk.status(US);
  assert.equal(other.code, 2);
  assert.ok(other.stop);
  await assertStay(inUs);
  await desk.order('resume', '--all', '--reason', 'it is over');
  await untilEvicted('the pods of the other cluster', inUs);
  assert.equal((await desk.status(US)).stop, undefined);
});

test('a denied delete is explained, and done when it is allowed again', async (t) => {
  const desk = await Desk.open(t);
  const [node] = eu.nodes;
  assert.ok(node);
  const [denied, ...others] = eu.podsOn([node]);
  assert.ok(denied);
  const { api, run, podPath, namespace } = eu.cluster;
  const name = `${run}-keeps-${denied.name}`;
  const path = (kind: string) => `/apis/admissionregistration.k8s.io/v1/validatingadmission${kind}`;
  const isDenied = async () => {
    try {
      await api.remove(podPath.call(eu.cluster, denied.name), { dryRun: ['All'] });
      return false;
    } catch (error) {
      if (error instanceof ApiError && error.message.includes(name)) return true;
      throw error;
    }
  };
  const allow = async () => {
    await api.remove(`${path('policybindings')}/${name}`);
    await api.remove(`${path('policies')}/${name}`);
  };
  t.after(allow);
  await api.create(path('policies'), {
    metadata: { name },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['DELETE'], resources: ['pods'] },
        ],
      },
      validations: [{ expression: `oldObject.metadata.name != '${denied.name}'`, message: 'not now' }],
    },
  });
  await api.create(path('policybindings'), {
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  });
  await until('the delete is denied', isDenied);

  await eu.taint([node], MAINTENANCE, 'now');
  await untilEvicted('the other pods', others);
  const names = async (...command: readonly string[]) =>
    JSON.stringify((await desk.read(z.unknown(), ...command)).data).includes(name);
  await until('pending names the cause', () => names('pending', EU), SHOWN_WITHIN_MS);
  assert.deepEqual([...(await desk.pending()).keys()], [denied.uid]);
  assert.ok(await names('explain', 'pod', `${namespace}/${denied.name}`, '--cluster', EU));
  assert.equal(denied.evictedAt, undefined);

  await allow();
  await until('the delete is admitted', async () => !(await isDenied()));
  const admittedAt = Date.now();
  await desk.order('retry', EU);
  const evictedAt = await until('the pod is evicted', () => denied.evictedAt);
  t.diagnostic(`evicted ${evictedAt - admittedAt} ms after it was admitted`);
  assert.ok(evictedAt - admittedAt <= BACK_WITHIN_MS + SHOWN_WITHIN_MS);
});

/** How an API server fails, and what ends that. */
const FAILURES = {
  refuses: (site: BusySite) => site.gate.refuse(),
  hangs: async (site: BusySite) => site.gate.hang(),
} as const;

/** Pods that tolerate the colleague's taint for a time, in which the API server goes away. */
async function timedPods(site: BusySite, node: string, seconds: readonly number[]) {
  const pods = await Promise.all(
    seconds.map((second, index) =>
      site.cluster.addPod(node, `timed-${index}`, { tolerations: [tolerates(MAINTENANCE, second)] }),
    ),
  );
  return { pods, remove: () => Promise.all(pods.map((pod) => site.cluster.deletePod(pod))) };
}

for (const [failure, fail] of Object.entries(FAILURES)) {
  test(`evictions go on within 5 s of the first answer of an API server that ${failure}`, async (t) => {
    const desk = await Desk.open(t);
    const { cluster, gate } = eu;
    const [node] = eu.nodes;
    assert.ok(node);
    const bare = eu.podsOn([node]);
    const { pods, remove } = await timedPods(eu, node, [8, 8, 8, 20, 8]);
    t.after(remove);
    const [held, lateHeld] = pods.slice(3);
    assert.ok(held && lateHeld);
    const overdue = pods.slice(0, 3);
    const hold = ({ name }: PodLife) =>
      desk.order('hold', 'pod', `${cluster.namespace}/${name}`, '--cluster', EU, '--reason', 'x', '--yes');

    await eu.taint([node], MAINTENANCE, 'now');
    await untilEvicted('the pods without a toleration', bare);
    const mend = await fail(eu);
    const endsAt = Date.now() + OUTAGE_MS;
    let before = 0;
    try {
      // Deletes of due pods that hang would reach the API server in the end, so these are held before they are due.
      await Promise.all([hold(held), hold(lateHeld)]);
      await momentComes(endsAt - OUTAGE_MS / 2);
      assertUntouched(...pods);
      await desk.untilShown('a required action', ({ code }) => code === 2);
      // Changes of the rules make the service look at its pods again, which costs no tries.
      for (const other of eu.nodes.slice(1, 4)) {
        await desk.order('hold', 'node', other, '--cluster', EU, '--reason', 'x', '--yes');
      }
      await momentComes(endsAt);
    } finally {
      before = gate.delivered;
      await mend();
    }
    const backAt = Date.now();
    const answeredAt = await until('the API server answers', () => gate.delivered > before && Date.now());
    t.diagnostic(`it answered ${answeredAt - backAt} ms after it was back`);
    const evictedAt = () => evictedOf(overdue)[0]?.evictedAt;
    const firstAt = await until('an overdue pod is evicted', evictedAt, SHOWN_WITHIN_MS);
    t.diagnostic(`the first overdue pod was evicted ${firstAt - answeredAt} ms later`);
    assert.ok(firstAt - answeredAt <= BACK_WITHIN_MS + CALLS_MS, `${firstAt - answeredAt} ms`);
    await untilEvicted('all overdue pods', overdue);
    await assertStay([held, lateHeld]);
  });
}

test('commands read the state of a killed service, and change no other fleet in its place', async (t) => {
  const desk = await Desk.open(t);
  const [node] = eu.nodes;
  assert.ok(node);
  const bare = eu.podsOn([node]);
  const { pods, remove } = await timedPods(eu, node, [20, 20, 20]);
  t.after(remove);
  await eu.taint([node], MAINTENANCE, 'now');
  await untilEvicted('the pods without a toleration', bare);
  // A kill just after a delete would leave its eviction pending.
  await desk.untilShown('the pods that are left', ({ pending }) => pending === pods.length);
  await desk.running.kill();

  const { code, data } = await desk.read(Status, 'status');
  assert.equal(code, 69);
  assert.equal(data.process, 'not-running');
  assert.deepEqual(
    data.clusters.map(({ cluster, pending }) => [cluster, pending]),
    [[EU, pods.length]],
  );

  let calls = 0;
  const aws = http.createServer((_, response) => {
    calls++;
    response.writeHead(400).end('{}');
  });
  aws.listen(0, '127.0.0.1');
  await once(aws, 'listening');
  t.after(() => void aws.close());
  const env = {
    AWS_REGION: 'eu-west-1',
    AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE',
    AWS_SECRET_ACCESS_KEY: 'example',
    AWS_ENDPOINT_URL: `http://127.0.0.1:${(aws.address() as AddressInfo).port}`,
  };
  for (const act of [
    ['stop', '--all'],
    ['stop', '--all', '--dry-run'],
    ['hold', 'node', node, '--cluster', EU, '--reason', 'x', '--yes'],
    ['policy', 'apply', '--all', '-f', fileIn(desk.dir, 'off.yaml', `${POLICY}guard: off\n`), '--yes'],
  ]) {
    const outcome = await taintwardIn(desk.dir, act, env);
    assert.notEqual(outcome.code, 0, act.join(' '));
    assert.match(outcome.err, /--state-dir/);
    assert.match(outcome.err, /--table/);
  }
  assert.equal(calls, 0, 'AWS was called');

  assertUntouched(...pods);
  await desk.start();
  await untilEvicted('the overdue pods', pods);
  assert.equal((await desk.status()).stop, undefined);
});

test('SIGTERM to npm ends the service, which evicts nothing after that, and frees its directory', async (t) => {
  const desk = await Desk.open(t);
  const stoppedAt = Date.now();
  desk.running.terminate();
  await until('nothing answers', async () => (await desk.running.answer()) === undefined, ENDS_WITHIN_MS);
  await until('npm ends', () => Promise.race([desk.running.exit, false as const]), ENDS_WITHIN_MS);
  t.diagnostic(`it ended within ${Date.now() - stoppedAt} ms`);
  const [node] = eu.nodes;
  assert.ok(node);
  const pods = eu.podsOn([node]);
  await eu.taint([node], MAINTENANCE, 'now');
  await assertStay(pods);
  await desk.start();
  await untilEvicted('the pods', pods);
});

test('observe mode counts no pods that the guard would hold', async (t) => {
  const desk = await Desk.open(t, { [US]: us }, '');
  const observed = async () => {
    const { data } = await desk.read(History, 'history', US);
    return new Set(data.flatMap(({ event, uid }) => (event === 'would-evict' && uid ? [uid] : [])));
  };
  // Without a tripped guard they are counted.
  const [node] = us.zones('b');
  assert.ok(node);
  const counted = us.podsOn([node]);
  await us.taint([node], MAINTENANCE, 'now');
  await until('they are counted', async () => (await observed()).size > 0, SHOWN_WITHIN_MS);
  const pods = us.podsOn(us.zones('a'));
  await us.failNodes(us.zones('a'));
  const trippedAt = Date.now();
  await desk.untilShown('the trips', (each) => tripped(each).join() === 'a,cluster', US);
  await momentComes(trippedAt + TOLERATED_SECONDS * 1000);
  await assertStay(pods);
  const counts = await observed();
  assert.ok(counted.every(({ uid }) => counts.has(uid)));
  assert.equal(
    pods.filter(({ uid }) => counts.has(uid)).length,
    0,
    'pods that the guard would hold are counted',
  );
  const pending = await desk.pending(US);
  for (const { uid } of pods) {
    const kinds = z.array(z.looseObject({ kind: z.string() })).parse(pending.get(uid)?.['heldBy']);
    assert.ok(kinds.some(({ kind }) => kind === 'guard'));
  }
  assertUntouched(...counted, ...pods);
});

test('two contexts of one cluster are refused at the start', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-incident-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const names = ['docker-desktop', 'docker-for-desktop'];
  const entries = [eu.entry('docker-desktop'), eu.directEntry('docker-for-desktop')];
  const service = new NpmService(dir, await freePort(), await contextArgs(dir, entries));
  t.after(() => service.kill());
  const { code, stderr } = await until(
    'npm start ends',
    () => Promise.race([service.exit, delay(100, false as const)]),
    ENDS_WITHIN_MS,
  );
  assert.notEqual(code, 0);
  for (const name of names) assert.ok(stderr.includes(name), stderr);
});

test('pods of a terminating namespace are deleted at once, by a policy with the Eviction API, too', async (t) => {
  await Desk.open(t, { [EU]: eu }, `${POLICY}method: evict\n`);
  const { api, run } = eu.cluster;
  const [node] = eu.nodes;
  assert.ok(node);
  const namespace = `${run}-ends`;
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  await api.create('/api/v1/namespaces', { metadata: { name: namespace } });
  t.after(async () => {
    await api.removeAll(pods, { gracePeriodSeconds: 0 });
    await api.remove(`/api/v1/namespaces/${namespace}`);
  });
  await until('its account exists', async () => {
    try {
      await api.create(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } });
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) return true;
      throw error;
    }
  });
  await api.create(pods, {
    metadata: { name: 'last' },
    spec: {
      nodeName: node,
      automountServiceAccountToken: false,
      containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }],
    },
  });
  await api.remove(`/api/v1/namespaces/${namespace}`);
  const Last = z.object({ metadata: z.object({ deletionTimestamp: z.string().optional() }) });
  await eu.taint([node], MAINTENANCE, 'now');
  await until(
    'the pod is deleted',
    async () => {
      try {
        return Last.parse(await api.read(`${pods}/last`)).metadata.deletionTimestamp !== undefined;
      } catch (error) {
        return error instanceof ApiError && error.status === 404;
      }
    },
    BACK_WITHIN_MS,
  );
});
