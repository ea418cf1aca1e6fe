import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { HoldTarget } from '#shared/eviction/policy.ts';
import { targetText } from '#shared/operations/acts/act.ts';
import { confirm, type Intent } from './acts.ts';
import { Icon, type IconName } from './icons.ts';

export type HeldTarget = Extract<Intent['draft'], { readonly kind: 'hold' }>['target'];

interface ActButtonProps {
  readonly intent: Intent;
  /** Label of the button. Absent: the intent's verb. */
  readonly text?: string;
  /** Object of the act, for screen readers. */
  readonly about?: string;
  readonly icon?: IconName;
  readonly kind?: 'plain' | 'main' | 'goes' | 'edged';
}

/** A button that does an act after confirmation. */
export const ActButton = ({ intent, text, about, icon, kind }: ActButtonProps): VNode => html`
  <button type="button" class=${`button ${kind ?? ''}`} onClick=${() => confirm(intent)}>
    ${icon && html`<${Icon} name=${icon} />`}
    <span class="word">${text ?? intent.verb}${about !== undefined && html`<span class="unseen"> ${about}</span>`}</span>
  </button>
`;

export const stopEvictions = (cluster?: string): Intent => ({
  title: `Stop all evictions in ${cluster ?? 'all clusters'}?`,
  verb: cluster === undefined ? 'Stop all' : 'Stop',
  draft: { kind: 'stop', cluster },
});

/** Resumes one cluster, or all. `id`: that of a stop of the cluster. Absent: the stop of all clusters. */
export const resumeEvictions = (cluster?: string, id?: string): Intent => ({
  title: `Resume evictions in ${cluster ?? 'all clusters'}?`,
  verb: 'Resume',
  draft: { kind: 'resume', cluster, id },
});

/** `scope`: cluster, customTaints, or zone/NAME. */
export const releaseGuard = (cluster: string, scope: string): Intent => ({
  title: `Release the guard of ${cluster} for ${scope}?`,
  verb: 'Release guard',
  draft: { kind: 'release-guard', cluster, scope },
});

export const releaseHold = (cluster: string, id: string, others: readonly string[] = []): Intent => ({
  title: `Release hold ${[id, ...others].join(' and ')}?`,
  verb: 'Release',
  draft: { kind: 'release', cluster, id, ...(others.length > 0 ? { others } : {}) },
});

export const holdPods = (
  cluster: string,
  target: HeldTarget,
  others: readonly HeldTarget[] = [],
): Intent => ({
  title: `Hold ${targetText(target as HoldTarget)}${others.length > 0 ? ` and ${others.length} more` : ''}?`,
  verb: 'Hold',
  draft: { kind: 'hold', cluster, target, ...(others.length > 0 ? { others } : {}) },
});

export const applyPolicy = (cluster: string, text: string): Intent => ({
  title: `Apply the policy to ${cluster}?`,
  verb: 'Apply',
  draft: { kind: 'apply-policy', cluster, text },
});

export const retry = (cluster: string, node?: string): Intent => ({
  title: `Retry failed evictions ${node === undefined ? `in ${cluster}` : `on ${node}`}?`,
  verb: 'Retry',
  draft: { kind: 'retry', cluster, node },
});
