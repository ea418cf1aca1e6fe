import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { confirm, type Intent } from './acts.ts';
import { Icon, type IconName } from './icons.ts';

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

export const stopAll = (): Intent => ({
  title: 'Stop all evictions in all clusters?',
  verb: 'Stop all',
  draft: { kind: 'stop' },
  lasts: true,
});

export const resumeAll = (): Intent => ({
  title: 'Resume evictions in all clusters?',
  verb: 'Resume',
  draft: { kind: 'resume' },
});

export const stopCluster = (cluster: string): Intent => ({
  title: `Stop all evictions in ${cluster}?`,
  verb: 'Stop',
  draft: { kind: 'stop', cluster },
  lasts: true,
});

/** `id`: that of a stop of the cluster. Absent: the stop of all clusters. */
export const resumeCluster = (cluster: string, id?: string): Intent => ({
  title: `Resume evictions in ${cluster}?`,
  verb: 'Resume',
  draft: { kind: 'resume', cluster, ...(id === undefined ? {} : { id }) },
});

/** `scope`: cluster, customTaints, or zone/NAME. */
export const releaseGuard = (cluster: string, scope: string): Intent => ({
  title: `Release the guard of ${cluster} for ${scope}?`,
  verb: 'Release guard',
  draft: { kind: 'release-guard', cluster, scope },
});

export const releaseHold = (cluster: string, id: string): Intent => ({
  title: `Release hold ${id}?`,
  verb: 'Release',
  draft: { kind: 'release', cluster, id },
});

export const holdPod = (cluster: string, namespace: string, name: string): Intent => ({
  title: `Hold pod ${namespace}/${name}?`,
  verb: 'Hold',
  draft: { kind: 'hold', cluster, target: { kind: 'pod', namespace, name } },
  lasts: true,
});

export const holdWorkload = (
  cluster: string,
  namespace: string,
  owner: { readonly kind: string; readonly name: string },
): Intent => ({
  title: `Hold the pods of ${owner.kind} ${namespace}/${owner.name}?`,
  verb: 'Hold',
  draft: { kind: 'hold', cluster, target: { kind: 'workload', namespace, owner } },
  lasts: true,
});

export const holdNode = (cluster: string, node: string): Intent => ({
  title: `Hold the pods of node ${node}?`,
  verb: 'Hold',
  draft: { kind: 'hold', cluster, target: { kind: 'node', node } },
  lasts: true,
});

export const retry = (cluster: string, node?: string): Intent => ({
  title: `Retry failed evictions ${node === undefined ? `in ${cluster}` : `on ${node}`}?`,
  verb: 'Retry',
  draft: { kind: 'retry', cluster, ...(node === undefined ? {} : { node }) },
});
