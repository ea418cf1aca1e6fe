import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import {
  type OutputFormat,
  outputOption,
  roomIn,
  shownAs,
  tableText,
  withExamples,
} from '#functions/cli/output.ts';
import { builtInOf } from '#functions/operator/built-in.ts';
import type { ClusterObjects } from '#functions/operator/cluster-objects.ts';
import { takenOver } from '#functions/operator/takeover/taken-tolerations.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import type { Takeover } from '#shared/kubernetes/api.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/api-json.ts';
import { isAlive } from '#shared/kubernetes/takeover.ts';
import { type InstalledPodTakeover, installedAtNodes, installedAtPods } from './installed.ts';
import { namespacesOf, podsOf } from './namespaces.ts';
import { addReachOptions, withCluster } from './reach.ts';

/** How a cluster stands. Moments are of the API server's clock. */
interface Status {
  readonly now: EpochMs;
  readonly nodes: Takeover | undefined;
  readonly pods: (InstalledPodTakeover & PodCounts) | undefined;
  readonly builtIn: BuiltIn;
  readonly alarms: readonly string[];
}

interface PodCounts {
  readonly namespaces: readonly string[];
  readonly taken: number;
  /** Made before the takeover, and not adopted. */
  readonly open: number;
}

/** `taintward takeover status`: what is installed, whether it is alive, and whether the built-in controller runs. */
export function addStatusCommand(takeover: Command, deps: CliDeps): void {
  const command = takeover
    .command('status')
    .description('shows what is installed, whether it is alive, and whether the built-in controller runs')
    .addOption(outputOption());
  withExamples(
    addReachOptions(command),
    'taintward takeover status prod',
    'taintward takeover status --context kind-kind -o json',
  ).action((name: string | undefined) =>
    withCluster(name, command, deps, async (objects) => {
      const { output } = command.opts<{ readonly output: OutputFormat }>();
      const status = await statusOf(objects, deps);
      deps.print(
        shownAs(output, {
          data: () => statusJson(status),
          text: (wide) => statusText(status, roomIn({ wide, paint: deps.paint })),
        }),
      );
    }),
  );
}

async function statusOf(objects: ClusterObjects, { clock }: Pick<CliDeps, 'clock'>): Promise<Status> {
  const builtIn = await builtInOf(objects);
  const pods = await podsIn(objects);
  const taints = await downTaints(objects);
  // Last, so that it is not older than what it is held against.
  const nodes = await installedAtNodes(objects);
  const now = clock.now() + objects.skewMs;
  return { now, nodes, pods, builtIn, alarms: nodes ? alarmsOf(nodes, taints, now) : [] };
}

async function podsIn(objects: ClusterObjects): Promise<Status['pods']> {
  const installed = await installedAtPods(objects);
  if (!installed) return undefined;
  const namespaces = await namespacesOf(objects, installed.spec);
  let taken = 0;
  let open = 0;
  for await (const pod of podsOf(objects, namespaces)) {
    if (pod.state.note !== '') taken += 1;
    else if (!pod.untouchable && takenOver(pod.state, installed.spec)) open += 1;
  }
  return { ...installed, namespaces, taken, open };
}

/** A NoExecute taint that the node controller set. */
export interface DownTaint {
  readonly node: string;
  readonly key: string;
  readonly timeAdded: EpochMs;
}

async function downTaints(objects: ClusterObjects): Promise<readonly DownTaint[]> {
  const found: DownTaint[] = [];
  for await (const { metadata, spec } of objects.list('/api/v1/nodes'))
    for (const taint of itemsOf(fieldsOf(spec)['taints']).map(fieldsOf)) {
      const timeAdded = Date.parse(textOf(taint['timeAdded']));
      if (taint['effect'] !== 'NoExecute' || Number.isNaN(timeAdded)) continue;
      found.push({ node: textOf(fieldsOf(metadata)['name']), key: textOf(taint['key']), timeAdded });
    }
  return found;
}

/** What is wrong with a takeover at the nodes, in sentences. */
export function alarmsOf(takeover: Takeover, taints: readonly DownTaint[], now: EpochMs): readonly string[] {
  const { heartbeat, aliveSince = Infinity, lapseMs, keys } = takeover;
  const alarms: string[] = [];
  if (heartbeat === undefined) {
    alarms.push('No relay has ever renewed it: look for takeover.withheld in its log.');
  } else if (!isAlive(takeover, now)) {
    alarms.push(`It lapsed ${ago(heartbeat + lapseMs, now)}: the built-in controller evicts.`);
  } else if (heartbeat - now > lapseMs) {
    alarms.push('Its heartbeat is of the future: clocks differ by more than the lapse.');
  }
  const slipped = taints.filter(
    ({ key, timeAdded }) =>
      keys.includes(key) && timeAdded >= aliveSince && timeAdded < (heartbeat ?? 0) + lapseMs,
  );
  for (const { node, key } of slipped)
    alarms.push(
      `Node ${node} got ${key}:NoExecute under a fresh heartbeat: the policy does not work, or clocks differ.`,
    );
  return alarms;
}

function statusText({ now, nodes, pods, builtIn, alarms }: Status, room: number): string {
  const rows = [
    ['TAKEOVER', 'STATE'],
    ['at nodes', nodes ? nodesText(nodes, now) : 'not installed'],
    ['at pods', pods ? podsText(pods) : 'not installed'],
    ['built-in controller', `${builtIn.state}: ${builtIn.evidence}`],
    ...alarms.map((alarm) => ['ALARM', alarm]),
  ];
  return tableText(rows, room);
}

function nodesText(takeover: Takeover, now: EpochMs): string {
  const { heartbeat, aliveSince, lapseMs, keys } = takeover;
  const lapse = `lapses after ${lapseMs / 1000} s, ${keys.join(', ')}`;
  if (heartbeat === undefined) return `installed, never renewed; ${lapse}`;
  const state = isAlive(takeover, now)
    ? `alive since ${new Date(aliveSince ?? heartbeat).toISOString()}`
    : 'lapsed';
  return `${state}, renewed ${ago(heartbeat, now)}; ${lapse}`;
}

const podsText = ({ by, spec, namespaces, taken, open }: NonNullable<Status['pods']>): string =>
  `installed by ${by}, fallback ${spec.fallbackSeconds} s; ${taken} pods in ${namespaces.length} namespaces${open > 0 ? `, ${open} more to adopt` : ''}; ${spec.keys.join(', ')}`;

const ago = (moment: EpochMs, now: EpochMs): string =>
  `${Math.max(0, Math.round((now - moment) / 1000))} s ago`;

/** A status for programs. */
function statusJson({ now, nodes, pods, builtIn, alarms }: Status): object {
  const moment = (at: EpochMs | undefined) => (at === undefined ? null : new Date(at).toISOString());
  return {
    nodes: nodes
      ? {
          keys: nodes.keys,
          lapseSeconds: nodes.lapseMs / 1000,
          heartbeat: moment(nodes.heartbeat),
          aliveSince: moment(nodes.aliveSince),
          alive: isAlive(nodes, now),
        }
      : null,
    pods: pods
      ? {
          by: pods.by,
          keys: pods.spec.keys,
          fallbackSeconds: pods.spec.fallbackSeconds,
          namespaces: pods.namespaces,
          taken: pods.taken,
          open: pods.open,
        }
      : null,
    builtIn,
    alarms,
  };
}
