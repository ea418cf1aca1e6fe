import type { Api } from '#shared/console/api.ts';
import type { HoldTarget } from '#shared/eviction/policy.ts';
import { targetText } from '#shared/operations/acts/act.ts';
import { durationText } from '#shared/time/duration.ts';

type Act = Api['POST api/preview']['asks'];

/** An act before its reason and duration are known. */
export type Draft = Act extends infer Each
  ? Each extends Act
    ? Omit<Each, 'reason' | 'durationMs'>
    : never
  : never;

/** Returns the command for an act, which works without the page, too. `undefined`: no command does exactly this. */
export function commandOf(draft: Draft, reason: string, durationMs: number): string | undefined {
  const words = wordsOf(draft);
  if (!words) return undefined;
  const isReasonless = draft.kind === 'stop' && reason === '';
  const options = [
    ...(isReasonless ? [] : ['--reason', reason || 'REASON']),
    ...(durationMs > 0 ? ['--for', durationText(durationMs)] : []),
  ];
  return ['taintward', ...words, ...options].map(quoted).join(' ');
}

function wordsOf(draft: Draft): readonly string[] | undefined {
  const { cluster = '--all' } = draft;
  switch (draft.kind) {
    case 'stop':
      return ['stop', cluster];
    case 'resume':
      return ['resume', cluster, ...(draft.id === undefined ? [] : ['--id', draft.id])];
    case 'hold':
      return draft.others
        ? undefined
        : ['hold', ...targetText(draft.target as HoldTarget).split(' '), '--cluster', cluster];
    case 'release':
      return draft.others ? undefined : ['release', draft.id];
    case 'release-guard':
      return ['release', 'guard', cluster, ...(draft.scope === undefined ? [] : ['--scope', draft.scope])];
    case 'apply-policy':
      return ['policy', 'apply', cluster, '-f', 'policy.yaml'];
    case 'retry':
      return draft.node === undefined && draft.cluster !== undefined ? ['retry', cluster] : undefined;
    case 'change-tolerations':
      return undefined;
    default:
      return draft satisfies never;
  }
}

/** Others choose the names, so a shell must not interpret them. */
export const quoted = (text: string): string =>
  /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
