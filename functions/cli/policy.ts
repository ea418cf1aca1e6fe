import type { Command } from 'commander';
import pMap from 'p-map';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { looserSettings } from '#shared/eviction/looser.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import type { Act } from '#shared/operations/acts/act.ts';
import { presentFleet } from '#shared/operations/acts/fleet-plan.ts';
import { actState, performAct, previewAct } from '#shared/operations/acts/perform.ts';
import { clusterNamed, clustersNamed, type Fleet } from '#shared/operations/fleet/fleet.ts';
import {
  fleetFiles,
  NO_DOCUMENTS,
  parseFleet,
  resolvePolicies,
} from '#shared/operations/fleet/fleet-documents.ts';
import {
  evictedByOthers,
  evictorDoubts,
  neededTexts,
  PARALLEL_CHECKS,
} from '#shared/operations/look/evictor-permissions.ts';
import { changedSettings } from '#shared/state/policy-change.ts';
import {
  parseAppliedPolicy,
  parsePolicyDocument,
  policyJsonSchema,
  policyText,
} from '#shared/state/policy-document.ts';
import { readPolicyFile } from '#shared/state/policy-file.ts';
import { parsePolicyOnce } from '#shared/state/stored-rules.ts';
import { type CliDeps, CliError, mustConfirm, throwFaults } from './command.ts';
import { previewsOf } from './do-acts.ts';
import { addDryRun, type DryRunOptions, evictedTable, printPreviews, settingRows } from './dry-run.ts';
import { EXIT } from './exit-codes.ts';
import {
  jsonText,
  linesText,
  outputOption,
  roomIn,
  type TableLayout,
  tableText,
  withExamples,
} from './output.ts';
import { showFleet, withFleet } from './with-fleet.ts';

interface ApplyOptions extends DryRunOptions {
  readonly file: string;
  readonly all: boolean;
  readonly yes: boolean;
  readonly reason?: string;
}

type PolicyAct = Extract<Act, { readonly kind: 'apply-policy' }>;

/** `taintward policy`: policies, which define the pods that are evicted in a cluster, and how. */
export function addPolicyCommand(program: Command, deps: CliDeps): void {
  const policy = program
    .command('policy')
    .summary('Manage policies')
    .description(
      'Manage policies, which define the pods that are evicted in a cluster, and how (docs/reference/policy.md).',
    );
  for (const addCommand of [addApply, addGet, addDiff, addValidate, addSchema]) addCommand(policy, deps);
}

const DOCUMENTS = [
  '-f, --file <path>',
  'policy document, or file or directory of documents of a fleet',
] as const;
const FILE = ['-f, --file <file>', 'policy document'] as const;

function addApply(policy: Command, deps: CliDeps): void {
  const command = policy
    .command('apply')
    .summary('Apply a policy to clusters')
    .description('Apply a policy to clusters. It takes effect within 5s.')
    .argument('[clusters...]', 'cluster names')
    .requiredOption(...FILE)
    .option('--all', 'all clusters', false)
    .option(
      '--yes',
      'skip the confirmation when pods may be evicted, or evicted sooner, or permissions are not verified',
      false,
    )
    .option('--reason <text>', 'reason, recorded in the audit log');
  withExamples(
    addDryRun(command),
    'taintward policy apply prod -f policy.yaml',
    'taintward policy apply --all -f policy.yaml --yes --reason "reviewed"',
    'taintward policy apply prod -f policy.yaml --dry-run',
  ).action((names: readonly string[]) =>
    withFleet<ApplyOptions>(command, deps, async (fleet, options) => {
      const text = applicableText(options.file, deps);
      const policy = parsePolicyDocument(text);
      const why = options.reason === undefined ? {} : { reason: options.reason };
      const permissions = neededTexts(policy);
      const warnings = evictedByOthers(policy);
      const clusters = await clustersNamed(names, options.all, fleet);
      const actOn = async (cluster: ClusterName) => ({
        act: { kind: 'apply-policy', cluster, text, ...why } as const,
        after: await evictorDoubts(policy, cluster, fleet),
      });
      const acts = await pMap(clusters, actOn, { concurrency: PARALLEL_CHECKS });
      const doubts = acts.flatMap(({ after }) => after);
      if (options.dryRun) {
        const previews = await previewsOf(acts, fleet, deps);
        const all = previews.map(({ effects, ...preview }) => ({
          ...preview,
          effects: [...effects, ...(preview.settings?.length ? permissions : []), ...warnings],
        }));
        printPreviews(all, options, deps);
        return;
      }
      deps.print(linesText([...warnings, ...doubts]));
      if (doubts.length > 0 && !options.yes)
        throw new CliError('Pods may not be evicted. Nothing was changed. To proceed, rerun with --yes.');
      await confirmLooser(policy, acts, fleet, options, deps);
      for (const { act } of acts) {
        const { message, changed } = await performAct(act, { pending: [], at: 0 }, fleet);
        deps.print(
          linesText(changed ? [`${message} ${await effectText(fleet)}`, ...permissions] : [message]),
        );
      }
    }),
  );
}

export async function effectText(fleet: Fleet): Promise<string> {
  const view = fleet.kind === 'local' ? await fleet.service().catch(() => 'frozen') : fleet.kind;
  return `It takes effect ${view === undefined ? 'once npm start runs' : view === 'frozen' ? 'once npm start responds' : 'within 5s'}.`;
}

/** Returns the text of a policy that may be applied now. Throws `PolicyError`. */
const applicableText = (file: string, deps: CliDeps): string =>
  readPolicyFile(file, (text) => parseAppliedPolicy(text, deps.clock.now()));

/** Shows the effects of a policy that frees or hastens evictions, and asks. Rejects as {@link mustConfirm} does. */
async function confirmLooser(
  policy: Policy,
  acts: readonly { readonly act: PolicyAct }[],
  fleet: Fleet,
  { yes }: ApplyOptions,
  deps: CliDeps,
): Promise<void> {
  const { clock, print } = deps;
  const looser: (keyof Policy)[] = [];
  for (const { act } of acts) {
    const { orders } = await fleet.rulesStore.read(act.cluster);
    const found = looserSettings(orders.policy?.read ?? DEFAULT_POLICY, policy, clock.now());
    if (found.length === 0) continue;
    const state = await actState(act, fleet, clock.now());
    const { effects, goes, settings = [] } = await previewAct(act, state, fleet);
    const what = found.includes('mode') ? 'enforce mode' : 'the policy';
    const text = linesText([`Effect of ${what} in cluster ${act.cluster}:`, ...effects]);
    const rows = found.includes('mode') ? '' : tableText(settingRows(settings));
    print(`${text}${evictedTable(goes)}${rows}`);
    looser.push(...found);
  }
  const question = looser.includes('mode') ? 'Start evicting pods?' : 'Apply the policy?';
  if (looser.length > 0) await mustConfirm(question, yes, deps);
}

function addGet(policy: Command, deps: CliDeps): void {
  const command = policy
    .command('get')
    .summary('Print the policy of a cluster')
    .argument('<cluster>', 'cluster name');
  withExamples(command, 'taintward policy get prod > policy.yaml').action((name: string) =>
    withFleet(command, deps, async (fleet) => {
      const cluster = await clusterNamed(name, fleet);
      const { orders } = await fleet.rulesStore.read(cluster);
      const text =
        orders.policy?.text ??
        `# No policy is applied to ${cluster}. These are the defaults.\n${policyText(DEFAULT_POLICY)}`;
      deps.print(text.endsWith('\n') ? text : `${text}\n`);
    }),
  );
}

function addDiff(policy: Command, deps: CliDeps): void {
  const command = policy
    .command('diff')
    .summary('Show the changes that a policy would make')
    .argument('[clusters...]', 'cluster names (default: all)')
    .requiredOption(...DOCUMENTS)
    .addOption(outputOption());
  withExamples(command, 'taintward policy diff prod -f policy.yaml', 'taintward policy diff -f fleet').action(
    (given: readonly string[]) =>
      showFleet<{ file: string }>(command, deps, async (fleet, { file }) => {
        const { names, policies, rules } = await declaredBy(file, fleet, deps);
        const known = (name: string) => names.find((each) => each === name) ?? clusterNamed(name, fleet);
        const shown = given.length === 0 ? names : await Promise.all(given.map(known));
        const rows = shown.flatMap((cluster) => {
          const current = rules.get(cluster)?.orders.policy?.read ?? DEFAULT_POLICY;
          const { text } = policies.get(cluster) ?? {};
          const changed = text === undefined ? [] : changedSettings(current, parsePolicyOnce(text));
          return changed.map((setting) => ({ cluster, ...setting }));
        });
        if (rows.length > 0) deps.exitWith(EXIT.actionRequired);
        const [only, ...others] = shown;
        const table = settingRows(rows).map((row, index) => [rows[index - 1]?.cluster ?? 'CLUSTER', ...row]);
        const text = (layout: TableLayout) =>
          rows.length === 0
            ? `No settings of ${others.length === 0 ? `cluster ${only}` : `${shown.length} clusters`} would change.\n`
            : tableText(others.length === 0 ? settingRows(rows) : table, roomIn(layout));
        return { data: () => rows, text };
      }),
  );
}

/** Returns the policies that a file or directory declares, by cluster, and the present rules. */
async function declaredBy(file: string, fleet: Fleet, deps: CliDeps) {
  const files = fleetFiles(file);
  const documents = files
    ? parseFleet(files, deps.clock.now())
    : { ...NO_DOCUMENTS, policies: [{ where: file, clusters: ['*'], text: readPolicyFile(file) }] };
  const { rules } = await presentFleet(documents, fleet);
  const names = [...rules.keys()];
  const { policies, faults } = resolvePolicies(documents, names);
  throwFaults([...documents.faults, ...faults], deps);
  return { names, rules, policies };
}

function addValidate(policy: Command, deps: CliDeps): void {
  const command = policy
    .command('validate')
    .summary('Validate a policy document, or documents of a fleet')
    .description('Validate a policy document, or the documents of a fleet.')
    .requiredOption(...DOCUMENTS);
  withExamples(
    command,
    'taintward policy validate -f policy.yaml',
    'taintward policy validate -f fleet',
  ).action(() => {
    const { file } = command.optsWithGlobals<{ file: string }>();
    const files = fleetFiles(file);
    if (files) {
      const documents = parseFleet(files, deps.clock.now());
      const { names, policies, faults } = documents;
      throwFaults([...faults, ...(names.length > 0 ? resolvePolicies(documents, names).faults : [])], deps);
      deps.print(
        `${file} is valid. Documents: ${names.length} of clusters, ${policies.length} of policies.\n`,
      );
      return;
    }
    const policy = parsePolicyDocument(applicableText(file, deps));
    deps.print(
      linesText([`${file} is a valid policy with mode ${policy.mode}.`, ...evictedByOthers(policy)]),
    );
  });
}

function addSchema(policy: Command, deps: CliDeps): void {
  const command = policy.command('schema').summary('Print the JSON Schema of policy documents');
  withExamples(command, 'taintward policy schema > taintward-policy.schema.json').action(() =>
    deps.print(jsonText(policyJsonSchema())),
  );
}
