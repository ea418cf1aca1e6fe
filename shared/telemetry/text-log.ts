import { styleText } from 'node:util';
import { tripText } from '#shared/eviction/guard.ts';
import { CANCELED, wordsOf } from '#shared/explain/gate-text.ts';
import { taintText } from '#shared/taints/taint.ts';
import { shownLine } from '#shared/text/escape-for-display.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type Log, type LogFields, logTo } from './log.ts';
import type { EvictionFields, LogEvents, LogLine, PodFields } from './log-events.ts';

/**
 * Returns a log for people: one line per change of state, with its time in UTC. It shows changes of nodes, pods, and
 * rules, and all warnings and errors. Other lines are omitted.
 */
export function textLog(clock: Clock, write: (line: string) => void): Log {
  return logTo((severity, line) => {
    const described = textOf(line, clock.now()) ?? (severity === 'info' ? undefined : complaint(line));
    if (described === undefined) return;
    const { cluster, node }: LogFields = line.fields;
    const where = [cluster, node].filter((part) => part !== undefined).join(' ');
    const text = `${styleText('dim', timeText(clock.now()))} ${where ? `${where}  ` : ''}${described}`;
    write(shownLine(text));
  });
}

function textOf({ event, fields }: LogLine, now: EpochMs): string | undefined {
  switch (event) {
    case 'relay.synced':
      return `watching (nodes: ${fields.nodes}, tainted: ${fields.tainted}, pods on tainted nodes: ${fields.pods})`;
    case 'node.changed':
      return nodeText(fields);
    case 'eviction.scheduled':
      return `${podOf(fields)}: ${willEvict(fields, now)}`;
    case 'eviction.rescheduled':
      return `${podOf(fields)}: rescheduled, ${willEvict(fields, now)}`;
    case 'eviction.loaded':
      return `restored: ${podOf(fields)}, ${willEvict({ ...fields, observed: true }, now)}`;
    case 'evictions.loaded':
      return `restored: ${fields.more} more`;
    case 'eviction.canceled':
      return styleText('green', `${podOf(fields)}: eviction canceled${canceledBy(fields)}`);
    case 'eviction.blocked':
      return styleText('yellow', `${podOf(fields)}: eviction ${BLOCKED[fields.by]}`);
    case 'pod.evicted':
      return styleText('red', `${podOf(fields)}: evicted (delay ${durationText(fields.delayMs)})`);
    case 'pod.evicted-externally':
      return `${podOf(fields)}: evicted by the built-in controller at ${moment(fields.deletedAt, now)} (${wasDue(fields, now)})`;
    case 'pod.evicted-despite-hold':
      return styleText(
        'red',
        `${podOf(fields)}: evicted by the built-in controller, although it was ${wordsOf({ kind: fields.by }).label}`,
      );
    case 'pod.already-gone':
      return `${podOf(fields)}: already gone`;
    case 'eviction.would-evict':
      return styleText('magenta', `${podOf(fields)}: would be evicted in enforce mode`);
    case 'eviction.held':
      return styleText(
        'magenta',
        `${podOf(fields)}: ${fields.observed ? 'would be held in enforce mode' : 'eviction held'}${heldBy(fields)}`,
      );
    case 'policy.applied':
      return `policy applied: ${fields.mode}`;
    case 'rules.changed':
      return 'rules changed; reevaluating all tainted nodes';
    case 'guard.tripped':
      return styleText('red', `guard tripped: ${tripText(fields)}; evictions are held`);
    case 'guard.would-trip':
      return styleText('yellow', `guard would trip: ${tripText(fields)}`);
    case 'guard.released':
      return styleText(
        'green',
        fields.by === 'auto'
          ? 'guard reset automatically; evictions resume'
          : 'guard released by an operator; evictions resume',
      );
    default:
      return undefined;
  }
}

const podOf = ({ namespace, pod }: PodFields): string => `${namespace}/${pod}`;

const canceledBy = ({ reason }: LogEvents['eviction.canceled']): string =>
  reason === undefined ? '' : ` (${CANCELED[reason]})`;

function heldBy({ by: gate }: LogEvents['eviction.held']): string {
  if (gate === undefined) return '';
  return gate === 'guard' ? ' by the guard' : ` (${wordsOf({ kind: gate }).label})`;
}

const BLOCKED = {
  budget: 'blocked by a disruption budget',
  admission: 'rejected by an admission webhook or policy',
};

function nodeText({ deletedAt, taints }: LogEvents['node.changed']): string {
  if (deletedAt !== undefined) return 'node deleted; its last taints still apply to its pods';
  return taints.length === 0
    ? styleText('green', 'untainted')
    : styleText('yellow', `tainted ${taints.map(taintText).join(', ')}`);
}

function willEvict({ dueAt, taints, observed }: EvictionFields, now: EpochMs): string {
  const [evicting, eviction] = observed ? ['due', 'due'] : ['evicting', 'eviction'];
  const when =
    dueAt - now < 1000 ? evicting : `${eviction} at ${moment(dueAt, now)} (in ${durationText(dueAt - now)})`;
  return `${when} for ${taints.join(', ')}`;
}

function wasDue({ dueAt, taints }: EvictionFields, now: EpochMs): string {
  if (taints.length === 0) return 'not due';
  return `due at ${moment(dueAt, now)} for ${taints.join(', ')}`;
}

function complaint({ event, fields }: LogLine): string {
  const { cluster: _cluster, node: _node, delta: _delta, uid: _uid, ...shown }: LogFields = fields;
  const { namespace, pod, error, reason = error, ...rest } = shown;
  const about = pod === undefined ? [] : [`${namespace}/${pod}`];
  const why = reason instanceof Error ? reason.message : String(reason ?? '');
  const details = Object.entries(rest).map(detailText).join(', ');
  const text = [...about, ...(why === '' ? [] : [why.replace(/\.$/, '')])].join(': ');
  const parts = [text, details === '' ? '' : `(${details})`].filter((part) => part !== '');
  return styleText('yellow', parts.length === 0 ? event : `${event}: ${parts.join(' ')}`);
}

/** Returns `next try at 2026-01-31T23:59:59Z` for `nextTryAt`. */
function detailText([name, value]: readonly [string, unknown]): string {
  const words = name.replace(/Ms$/, '').replaceAll(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`);
  if (typeof value !== 'number') return `${words} ${value}`;
  return `${words} ${MOMENT.test(name) ? timeText(value) : name.endsWith('Ms') ? durationText(value) : value}`;
}

const MOMENT = /^(at|since|timeAdded|.+At)$/;

/** Returns a time in UTC, with its date only on another day. */
function moment(at: EpochMs, now: EpochMs): string {
  const [date, time = ''] = timeText(at).split('T');
  return timeText(now).startsWith(`${date}T`) ? time : timeText(at);
}
