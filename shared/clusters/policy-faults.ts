import type { EpochMs } from '#shared/eviction/identity.ts';
import type { LabelSelector } from '#shared/eviction/policy.ts';
import { dnsLabelFaults, labelKeyFaults, labelValueFaults } from '#shared/taints/validation.ts';

/*
 * A policy may be written that can be read, and would do something else than its owner means: a name that nothing in Kubernetes can
 * have selects nothing, and a selector without conditions selects everything. Such a policy is refused where somebody applies or
 * validates it. What was stored before is read all the same, and goes on to mean what it meant.
 */

/** A selection as it stands in a policy document. */
interface WrittenSelection {
  readonly namespaces?: readonly string[];
  readonly labels?: LabelSelector;
  readonly taints?: readonly string[];
  readonly until?: string;
}

/** The settings of a policy document that name something, or end. */
export interface WrittenPolicy {
  readonly pausedUntil?: string;
  readonly exclude?: readonly WrittenSelection[];
  readonly only?: readonly WrittenSelection[];
  readonly tolerationSeconds?: Readonly<Record<string, number>>;
  readonly virtualKeys?: readonly string[];
}

/** Why a policy that can be read is not to be applied. */
export interface PolicyFault {
  /** Of the setting, from the document's root. */
  readonly path: readonly PropertyKey[];
  /** The end of a sentence that begins with the setting. */
  readonly fault: string;
}

/** The names in a policy that nothing in Kubernetes can have, and its selectors that are empty. */
export function* nameFaults({
  exclude = [],
  only = [],
  tolerationSeconds = {},
  virtualKeys = [],
}: WrittenPolicy): Iterable<PolicyFault> {
  for (const [index, selection] of exclude.entries()) yield* selectionFaults(['exclude', index], selection);
  for (const [index, selection] of only.entries()) yield* selectionFaults(['only', index], selection);
  for (const key of Object.keys(tolerationSeconds)) yield* taintFaults(['tolerationSeconds', key], key);
  for (const [index, key] of virtualKeys.entries()) yield* taintFaults(['virtualKeys', index], key);
}

/** The moments in a policy that are over: what ends at one of them never begins. */
export function* momentFaults(
  { pausedUntil, exclude = [], only = [] }: WrittenPolicy,
  now: EpochMs,
): Iterable<PolicyFault> {
  const isOver = (until: string | undefined) => until !== undefined && Date.parse(until) <= now;
  if (isOver(pausedUntil))
    yield { path: ['pausedUntil'], fault: 'is over: write mode: enforce, or a time to come' };
  for (const [name, selections] of Object.entries({ exclude, only })) {
    for (const [index, { until }] of selections.entries()) {
      if (isOver(until))
        yield { path: [name, index, 'until'], fault: 'is over: remove the entry, or write a time to come' };
    }
  }
}

function* selectionFaults(
  path: readonly PropertyKey[],
  { namespaces = [], labels = {}, taints = [] }: WrittenSelection,
): Iterable<PolicyFault> {
  for (const [index, name] of namespaces.entries()) {
    const faults = patternFault(name, 'the name of a namespace') ?? dnsLabelFaults(name);
    yield* faultsAt([...path, 'namespaces', index], faults);
  }
  yield* labelFaults([...path, 'labels'], labels);
  for (const [index, key] of taints.entries()) yield* taintFaults([...path, 'taints', index], key);
}

function* labelFaults(
  path: readonly PropertyKey[],
  { matchLabels, matchExpressions = [] }: LabelSelector,
): Iterable<PolicyFault> {
  const labels = Object.entries(matchLabels ?? {});
  const within = [...path, 'matchLabels'];
  if (matchLabels && labels.length === 0)
    yield { path: within, fault: 'must name a label, or be left out: without one it selects everything' };
  for (const [key, value] of labels) {
    yield* faultsAt([...within, key], labelKeyFault(key));
    yield* faultsAt([...within, key], labelValueFaults(value));
  }
  for (const [index, { key, values = [] }] of matchExpressions.entries()) {
    const at = [...path, 'matchExpressions', index];
    yield* faultsAt([...at, 'key'], labelKeyFault(key));
    for (const [place, value] of values.entries())
      yield* faultsAt([...at, 'values', place], labelValueFaults(value));
  }
}

const labelKeyFault = (key: string): readonly string[] =>
  patternFault(key, 'the key of a label') ?? labelKeyFaults(key);

function* taintFaults(path: readonly PropertyKey[], key: string): Iterable<PolicyFault> {
  const [rest] = /[=:].*$/s.exec(key) ?? [];
  const whole = rest === undefined ? undefined : [`must be the key of a taint alone: leave out ${rest}`];
  yield* faultsAt(path, patternFault(key, 'the key of a taint') ?? whole ?? labelKeyFaults(key));
}

/** Kubernetes matches taints, tolerations and namespaces by whole names, and so does a policy. */
const patternFault = (name: string, what: string): readonly string[] | undefined =>
  name.includes('*') ? [`must be ${what}, written out: a * matches nothing, so list each one`] : undefined;

const faultsAt = (path: readonly PropertyKey[], faults: readonly string[]): readonly PolicyFault[] =>
  faults.map((fault) => ({ path, fault }));
