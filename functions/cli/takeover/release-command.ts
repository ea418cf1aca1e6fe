import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { addDryRun, type DryRunOptions, printPreviews } from '#functions/cli/dry-run.ts';
import { withExamples } from '#functions/cli/output.ts';
import { fieldsOf, itemsOf } from '#shared/kubernetes/http/api-json.ts';
import type { Preview } from '#shared/operations/acts/preview.ts';
import { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { NODE_BINDING, NODE_TAKEOVER, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import {
  kyvernoPodTakeover,
  POD_BINDING,
  POD_TAKEOVER,
  podTakeover,
} from '#shared/operations/takeover/at-pods.ts';
import { installedAtPods } from '#shared/operations/takeover/installed.ts';
import { type Manifest, pathOf } from '#shared/operations/takeover/manifest.ts';
import { namespacesOf, taintedNodes, takesOverIn } from '#shared/operations/takeover/namespaces.ts';
import { type PodJson, projectTakenPod } from '#shared/operations/takeover/taken-pod.ts';
import { type PodState, restored } from '#shared/operations/takeover/taken-tolerations.ts';
import { Age } from '#shared/time/age.ts';
import { systemClock } from '#shared/time/clock.ts';
import { report } from './adopt-command.ts';
import { changedObjects } from './changed-objects.ts';
import { countMoves, movePods } from './move-pods.ts';
import { type Way, wayOption } from './options.ts';
import { addReachOptions, withCluster } from './reach.ts';

/** Consecutive tries per API server that must not apply the policy. Each try uses its own connection. */
const UNTAKEN_TRIES = 5;
const TRY_MS = 500;
const RELEASED_WITHIN_MS = 60_000;

/**
 * `taintward takeover release`: returns eviction to the built-in controller, and removes all objects of the
 * takeover.
 */
export function addReleaseCommand(takeover: Command, deps: CliDeps): void {
  const command = takeover
    .command('release')
    .summary('Return eviction to the built-in controller')
    .description(
      'Remove a takeover completely, so that the built-in controller evicts again. It can be repeated.',
    )
    .addOption(wayOption());
  withExamples(
    addDryRun(addReachOptions(command)),
    'taintward takeover release prod --level node',
    'taintward takeover release prod --level node --dry-run',
    'taintward takeover release prod --level pod',
  ).action((name: string | undefined) =>
    withCluster(name, command, deps, async (objects, note) => {
      const { level: at, ...options } = command.opts<DryRunOptions & { readonly level: Way }>();
      if (options.dryRun) {
        printPreviews(await releasePreviews(objects, at), options, deps);
        return;
      }
      const released = () => note('takeover-released', `released the takeover at ${at} level`);
      if (at === 'node') await releaseNodes(objects, deps, released);
      else await releasePods(objects, () => new ClusterObjects(objects.connection), deps, released);
    }),
  );
}

/** Returns the effect of a release. Empty: nothing is installed, and no pods are taken over. */
async function releasePreviews(objects: ClusterObjects, at: Way): Promise<readonly Preview[]> {
  const all = at === 'node' ? NODE_OBJECTS : [...POD_OBJECTS, ...podTakeover(POD_TAKEOVER)];
  const changes = await changedObjects(objects, all, 'delete');
  const pods = at === 'node' ? 0 : await countMoves(allPods(objects), stateBefore);
  if (changes.length === 0 && pods === 0) return [];
  const change = `The takeover at ${at} level is released.`;
  const effects = [
    'The built-in controller evicts again.',
    ...(at === 'pod' ? [`Pods restored: ${pods}.`] : []),
  ];
  return [{ change, effects, objects: changes }];
}

/** The binding is removed first, because it puts the policy in force. The kind of the heartbeat is removed last. */
const NODE_OBJECTS = [NODE_BINDING, ...nodeTakeover(NODE_TAKEOVER).toReversed()];
/** Objects that are removed before pods are restored. */
const POD_OBJECTS = [POD_BINDING, ...kyvernoPodTakeover(POD_TAKEOVER)];

const stateBefore = ({ state }: PodJson): PodState | undefined =>
  state.note === '' ? undefined : restored(state);

async function releaseNodes(
  objects: ClusterObjects,
  deps: CliDeps,
  released: () => Promise<void>,
): Promise<void> {
  const removed = await removeAll(objects, NODE_OBJECTS);
  if (removed > 0) await released();
  deps.print(
    removed === 0
      ? 'No node-level takeover is installed.\n'
      : 'Released. Within seconds, taints of the node controller are admitted again, and the built-in controller evicts for them. Remove treatAsNoExecute from the policy.\n',
  );
}

async function releasePods(
  objects: ClusterObjects,
  anew: () => ClusterObjects,
  deps: CliDeps,
  released: () => Promise<void>,
): Promise<void> {
  const installed = await installedAtPods(objects);
  await removeAll(objects, POD_OBJECTS);
  const namespaces = installed ? await namespacesOf(objects, installed.spec) : [];
  deps.progress('Waiting until no API server takes over pods');
  if (namespaces.length > 0) await untilUntaken(objects, anew, namespaces);
  const moves = await movePods(
    objects,
    allPods(objects),
    await taintedNodes(objects),
    deps.progress,
    stateBefore,
  );
  await removeAll(objects, podTakeover(POD_TAKEOVER));
  if (installed) await released();
  report(deps, moves, 'restored');
}

/** Yields the pods of all namespaces, because a namespace may no longer be selected. */
async function* allPods(objects: ClusterObjects) {
  for await (const pod of objects.list('/api/v1/pods')) yield projectTakenPod(pod);
}

async function removeAll(objects: ClusterObjects, manifests: readonly Manifest[]): Promise<number> {
  let removed = 0;
  for (const manifest of manifests) if (await objects.remove(pathOf(manifest))) removed += 1;
  return removed;
}

/**
 * Waits until no responding API server takes over pods: one that still does would undo the restoration.
 * Several API servers may share one address, so each connection may reach a different one.
 */
async function untilUntaken(
  objects: ClusterObjects,
  anew: () => ClusterObjects,
  namespaces: readonly string[],
): Promise<void> {
  const wanted = UNTAKEN_TRIES * (await apiServers(objects));
  const age = new Age(systemClock);
  for (let untaken = 0; untaken < wanted; ) {
    const fresh = anew();
    try {
      untaken = (await takesOverIn(fresh, namespaces)) === true ? 0 : untaken + 1;
    } finally {
      fresh.close();
    }
    if (untaken === 0 && age.atLeastMs >= RELEASED_WITHIN_MS + wanted * TRY_MS) {
      throw new CliError(
        `An API server still takes over pods that are created, so none were restored. Another tool may keep its policy. Release it again once the policy is gone.`,
      );
    }
    if (untaken < wanted) await delay(TRY_MS);
  }
}

/** Returns the number of API servers. */
async function apiServers(objects: ClusterObjects): Promise<number> {
  const addresses = new Set<unknown>();
  const labelSelector = 'kubernetes.io/service-name=kubernetes';
  const slices = objects.list('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    labelSelector,
  });
  for await (const { endpoints } of slices)
    for (const endpoint of itemsOf(endpoints))
      for (const address of itemsOf(fieldsOf(endpoint)['addresses'])) addresses.add(address);
  return Math.max(1, addresses.size);
}
