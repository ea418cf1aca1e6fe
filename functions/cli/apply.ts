import type { Command } from 'commander';
import pMap from 'p-map';
import { looserSettings } from '#shared/eviction/looser.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { checkReason } from '#shared/operations/acts/decide.ts';
import {
  type FleetPlan,
  type PresentFleet,
  planFleet,
  presentFleet,
  type RegistryAct,
} from '#shared/operations/acts/fleet-plan.ts';
import { performAct } from '#shared/operations/acts/perform.ts';
import type { Preview } from '#shared/operations/acts/preview.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { parseFleet, readFiles } from '#shared/operations/fleet/fleet-documents.ts';
import {
  evictedByOthers,
  evictorDoubts,
  neededTexts,
  PARALLEL_CHECKS,
} from '#shared/operations/look/evictor-permissions.ts';
import { parsePolicyOnce } from '#shared/state/stored-rules.ts';
import { accessText, changeRegistry, checked, lossText, REMOVED, refuseNameForAgent } from './clusters.ts';
import { type CliDeps, CliError, mustConfirm, throwFaults } from './command.ts';
import { previewsOf } from './do-acts.ts';
import { addDryRun, type DryRunOptions, previewText, printPreviews } from './dry-run.ts';
import { EXIT } from './exit-codes.ts';
import { linesText, withExamples } from './output.ts';
import { effectText } from './policy.ts';
import { withFleet } from './with-fleet.ts';

interface ApplyOptions extends DryRunOptions {
  readonly file: string;
  readonly prune: boolean;
  readonly check: boolean;
  readonly yes: boolean;
  readonly reason?: string;
}

interface Step {
  readonly preview: Preview;
  /** True: it needs a confirmation. */
  readonly asks: boolean;
  /** Resolves with the sentence that it is done. */
  perform(): Promise<string>;
}

/** `taintward apply`: makes a fleet as its documents declare it. */
export function addApplyCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('apply')
    .summary('Apply the documents of a fleet')
    .description(
      'Apply the documents of a fleet: its clusters and their policies (docs/how-to/manage-as-code.md). Stops and holds stay. With --dry-run, it exits with 2 if something would change.',
    )
    .requiredOption('-f, --file <path>', 'file with documents, or a directory with *.yaml files')
    .option('--prune', 'also remove clusters without a document, and policies that none declares', false)
    .option('--no-check', 'skip the check of connection and permissions of new clusters and new access')
    .option(
      '--yes',
      'skip the confirmation when pods may be evicted, or evicted sooner, something is removed, or permissions are not verified',
      false,
    )
    .option('--reason <text>', 'reason, recorded in the audit log, for example the commit');
  withExamples(
    addDryRun(command),
    'taintward apply -f fleet --dry-run',
    'taintward apply -f fleet --yes --reason "$GITHUB_SHA"',
  ).action(() =>
    withFleet<ApplyOptions>(command, deps, async (fleet, options) => {
      if (options.reason !== undefined) checkReason(options.reason);
      const documents = parseFleet(readFiles(options.file), deps.clock.now());
      const present = await presentFleet(documents, fleet);
      const plan = planFleet(documents, present, { ...options, now: deps.clock.now() });
      throwFaults(plan.faults, deps);
      await perform(await stepsOf(plan, present, fleet, options, deps), options, deps);
    }),
  );
}

/** Checks and previews each act. Rejects with `CliError` if any is not possible. */
async function stepsOf(
  { registrations, policies }: FleetPlan,
  present: PresentFleet,
  fleet: Fleet,
  options: ApplyOptions,
  deps: CliDeps,
): Promise<readonly Step[]> {
  const faults: string[] = [];
  const effect = await effectText(fleet);
  const policyStep = async (act: FleetPlan['policies'][number]): Promise<Step> => {
    const { cluster } = act;
    const policy = act.kind === 'apply-policy' ? parsePolicyOnce(act.text) : DEFAULT_POLICY;
    const before = present.rules.get(cluster)?.orders.policy?.read ?? DEFAULT_POLICY;
    // A new cluster, or new access, is checked with its registration.
    const isManaged = present.clusters.includes(cluster);
    const doubts = isManaged ? await evictorDoubts(policy, cluster, fleet) : [];
    const after = [...doubts, ...neededTexts(policy), ...evictedByOthers(policy)];
    const [preview] = await previewsOf([{ act, after }], fleet, deps);
    if (!preview) throw new Error('each act has a preview');
    const asks =
      act.kind === 'withdraw-policy' ||
      doubts.length > 0 ||
      looserSettings(before, policy, deps.clock.now()).length > 0;
    return {
      preview,
      asks,
      perform: async () => `${(await performAct(act, { pending: [], at: 0 }, fleet)).message} ${effect}`,
    };
  };
  const registryStep = async (act: RegistryAct): Promise<Step> => {
    const policy = policies.find((each) => each.kind === 'apply-policy' && each.cluster === nameOf(act));
    const then = policy?.kind === 'apply-policy' ? parsePolicyOnce(policy.text) : undefined;
    const stored = present.rules.get(nameOf(act))?.orders.policy?.read ?? DEFAULT_POLICY;
    if (act.kind !== 'remove' && act.to.access.kind === 'agent') refuseNameForAgent(act.to.name);
    const loss = act.kind === 'remove' ? await lossText(nameOf(act), fleet, deps.clock.now()) : undefined;
    const effects =
      act.kind === 'remove'
        ? [REMOVED, ...(loss === undefined ? [] : [loss])]
        : options.check
          ? (await checked(act.to, then ?? stored, fleet, deps)).map((text) => text.replace(/\.?$/, '.'))
          : [];
    return {
      preview: { cluster: nameOf(act), change: changeText(act), effects },
      asks: act.kind === 'remove',
      perform: async () => {
        await changeRegistry(act, fleet, deps, options.reason);
        return changeText(act);
      },
    };
  };
  const collected =
    <Act>(step: (act: Act) => Promise<Step>) =>
    (act: Act) =>
      step(act).catch((error: Error) => {
        faults.push(error.message);
        return undefined;
      });
  const steps = [
    ...(await pMap(registrations, collected(registryStep), { concurrency: PARALLEL_CHECKS })),
    ...(await pMap(policies, collected(policyStep), { concurrency: PARALLEL_CHECKS })),
  ];
  throwFaults(faults, deps);
  return steps.filter((step) => step !== undefined);
}

async function perform(steps: readonly Step[], options: ApplyOptions, deps: CliDeps): Promise<void> {
  const previews = steps.map(({ preview }) => preview);
  if (options.dryRun) {
    printPreviews(previews, options, deps);
    if (steps.length > 0) deps.exitWith(EXIT.actionRequired);
    return;
  }
  if (steps.length === 0) {
    deps.print('The fleet is as its documents declare. Nothing was changed.\n');
    return;
  }
  if (steps.some(({ asks }) => asks)) {
    deps.print(previews.map(previewText).join(''));
    await mustConfirm('Apply all of this?', options.yes, deps);
  }
  const errors: Error[] = [];
  // One that fails keeps no other cluster from its change.
  for (const step of steps)
    await step.perform().then(
      (text) => deps.print(linesText([text])),
      (error: Error) => errors.push(error),
    );
  if (errors.length > 0)
    throw new CliError(`Not applied: ${errors.map(({ message }) => message).join(' ')} To try again, rerun.`);
}

const nameOf = (act: RegistryAct) => (act.kind === 'remove' ? act.from : act.to).name;

function changeText(act: RegistryAct): string {
  switch (act.kind) {
    case 'add':
      return `Cluster ${act.to.name} is registered: ${accessText(act.to)}.`;
    case 'change':
      return `The access of cluster ${act.to.name} is changed: ${accessText(act.to)}, instead of ${accessText(act.from)}. Its evictions are kept.`;
    case 'remove':
      return `Cluster ${act.from.name} is removed from the registry.`;
    default:
      return act satisfies never;
  }
}
