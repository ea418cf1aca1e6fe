import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { addDryRun, type DryRunOptions, printPreviews } from '#functions/cli/dry-run.ts';
import { linesText, withExamples } from '#functions/cli/output.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { unlessDenied } from '#shared/kubernetes/permissions.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { disproof } from '#shared/kubernetes/takeover-proof.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { NODE_BINDING, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import { type Manifest, pathOf } from '#shared/operations/takeover/manifest.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { Age } from '#shared/time/age.ts';
import { systemClock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';
import { changedObjects } from './changed-objects.ts';
import { addTakeoverOptions, parseTakeover, type TakeoverOptions } from './options.ts';
import { missingTakeoverPermissions } from './permissions.ts';
import { addReachOptions, withCluster } from './reach.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const MANAGER = 'taintward-takeover';
/** An API server usually serves a new kind, or applies a new policy, within a second or two. */
const KNOWN_WITHIN_MS = 30_000;
const POLL_MS = 250;
/** Number, interval, and timeout of the dry runs that prove a takeover. */
export const PATIENCE = { proofs: 6, everyMs: 500, withinMs: KNOWN_WITHIN_MS };

/** `taintward takeover apply`: checks the cluster, and installs the takeover. */
export function addApplyCommand(takeover: Command, deps: CliDeps): void {
  const command = takeover
    .command('apply')
    .summary('Install a takeover in a cluster')
    .description(
      'Install a takeover in a cluster, so that Taintward evicts instead of the built-in controller, after a check. It can be repeated.',
    );
  withExamples(
    addDryRun(addTakeoverOptions(addReachOptions(command))),
    'taintward takeover apply prod',
    'taintward takeover apply prod --dry-run',
  ).action(async (name: string | undefined) => {
    const wanted = parseTakeover(command.opts<TakeoverOptions>());
    await withCluster(name, command, deps, async (objects, note) => {
      await mustServePolicies(objects);
      await mustHavePermissions(objects);
      const options = command.opts<DryRunOptions>();
      const effects = effectsOf(wanted.keys);
      const parts = nodeTakeover(wanted);
      if (options.dryRun) {
        const changes = await changedObjects(objects, parts, 'apply');
        const change = 'The takeover is applied to the cluster.';
        printPreviews([{ change, effects, objects: changes }], options, deps);
        return;
      }
      await applyAll(objects, parts);
      await mustWork(objects, deps);
      await note('takeover-applied', 'applied the takeover');
      deps.print(`Applied, and verified by a dry run. ${linesText(effects)}`);
    });
  });
}

const effectsOf = (keys: readonly string[]): readonly string[] => [
  `The built-in controller does not evict while the relay renews the heartbeat in takeovers/live. This requires a policy with mode enforce, a guard, and treatAsNoExecute with ${keys.join(', ')}.`,
  'To check the heartbeat, run taintward takeover status.',
];

/**
 * Reports whether MutatingAdmissionPolicy is served. Discovery is optional, so only 404 counts; other responses are
 * left to the checks that follow.
 */
async function servesPolicies(objects: ClusterObjects): Promise<boolean> {
  const list = () => objects.get(ADMISSION).then((group) => itemsOf(group?.['resources']));
  const served = await unlessDenied(list());
  if (served) return served.some((each) => fieldsOf(each)['name'] === 'mutatingadmissionpolicies');
  return objects.text(pathOf(NODE_BINDING)).then(
    () => true,
    ({ status, message }: ApiError) => status !== 404 || message.includes('" not found'),
  );
}

async function mustServePolicies(objects: ClusterObjects): Promise<void> {
  if (await servesPolicies(objects)) return;
  const { gitVersion } = (await unlessDenied(objects.get('/version'))) ?? {};
  throw new CliError(
    `The API server ${objects.host} (${textOf(gitVersion) || 'unknown version'}) does not serve MutatingAdmissionPolicy v1, which came with Kubernetes 1.36. Disable its built-in controller (--controllers=*,-taint-eviction-controller), or observe.`,
  );
}

async function mustHavePermissions(objects: ClusterObjects): Promise<void> {
  const missing = await missingTakeoverPermissions(objects);
  if (missing.length === 0) return;
  throw new CliError(
    `The credentials for ${objects.host} lack permissions, which cdk/rbac/operators/admin.yaml grants: ${missing.join(', ')}.`,
  );
}

/** Applies objects in the given order. */
export async function applyAll(objects: ClusterObjects, manifests: readonly Manifest[]): Promise<void> {
  for (const object of manifests) {
    if (object.kind === 'Takeover') await applyOnceKnown(objects, object);
    else await objects.apply(pathOf(object), object, MANAGER);
  }
}

/**
 * Proves that a takeover works, by consecutive dry runs: an API server may apply the previous
 * policy for another second. Each dry run uses its own connection, which may reach another API server. If the
 * takeover doesn't work, its binding is removed, so the takeover has no effect. Then `CliError` gives the
 * reason.
 */
export async function mustWork(
  objects: ClusterObjects,
  { clock, progress }: Pick<CliDeps, 'clock' | 'progress'>,
  { proofs, everyMs, withinMs }: typeof PATIENCE = PATIENCE,
): Promise<void> {
  progress('Verifying the takeover by dry runs');
  const age = new Age(clock);
  for (let proven = 0; proven < proofs; ) {
    const wrong = await wrongNow(new RestApi(objects.connection, clock));
    proven = wrong === undefined ? proven + 1 : 0;
    if (wrong !== undefined && age.atLeastMs >= withinMs) {
      await objects.remove(pathOf(NODE_BINDING));
      throw new CliError(
        `Not applied, because ${wrong}. Its binding ${NODE_BINDING.metadata.name} was removed, so the built-in controller evicts as before. Fix the cause and apply the takeover again, or release it.`,
      );
    }
    if (proven < proofs) await delay(everyMs);
  }
}

async function wrongNow(api: RestApi): Promise<string | undefined> {
  try {
    const takeover = await api.getTakeover();
    return takeover
      ? await disproof(api, takeover, { tries: 1 })
      : 'takeovers/live is not there, or not shown to these credentials';
  } catch (error) {
    return errorMessage(error);
  } finally {
    api.close();
  }
}

/** For an object of a new kind, which may be served later than others of the group: only success proves it. */
async function applyOnceKnown(objects: ClusterObjects, object: Manifest): Promise<void> {
  const age = new Age(systemClock);
  for (;;) {
    try {
      await objects.apply(pathOf(object), object, MANAGER);
      return;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
      if (age.atLeastMs >= KNOWN_WITHIN_MS) {
        throw new CliError(
          `The API server does not know its new kind, takeovers, after ${durationText(KNOWN_WITHIN_MS)}: apply it again.`,
        );
      }
    }
    await delay(POLL_MS);
  }
}
