import { styleText } from 'node:util';
import { tripText } from '#shared/eviction/guard.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { CancelReason } from '#shared/eviction/records.ts';
import { wordsOf } from '#shared/explain/brake-words.ts';
import { shownLine } from '#shared/shown-text.ts';
import { taintText } from '#shared/taints/taint.ts';
import { type Log, type LogFields, logTo } from '#shared/telemetry/log.ts';
import type { EvictionFields, LogEvents, LogLine, PodFields } from '#shared/telemetry/log-events.ts';
import type { Clock } from '#shared/time/clock.ts';

/**
 * A log for people: one line per change of state, with date and time. Shows what happens to nodes and pods and
 * what goes wrong; keeps quiet about the rest.
 */
export function narrator(clock: Clock, write: (line: string) => void): Log {
  return logTo((severity, line) => {
    if (severity === 'debug') return;
    const told = tell(line, clock.now()) ?? (severity === 'info' ? undefined : complaint(line));
    if (told === undefined) return;
    const { cluster, node }: LogFields = line.fields;
    const where = [cluster, node].filter((part) => part !== undefined).join(' ');
    const text = `${styleText('dim', dateAndTime(clock.now()))} ${where ? `${where}  ` : ''}${told}`;
    write(shownLine(text));
  });
}

/** What happened to a node or a pod; `undefined` for every other event. */
function tell({ event, fields }: LogLine, now: EpochMs): string | undefined {
  switch (event) {
    case 'relay.synced':
      return `watching ${fields.nodes} nodes: ${fields.tainted} are tainted, with ${fields.pods} pods`;
    case 'node.changed':
      return tellNode(fields);
    case 'eviction.scheduled':
      return `${podOf(fields)} ${willGo(fields, now)}`;
    case 'eviction.rescheduled':
      return `${podOf(fields)} now ${willGo(fields, now)}`;
    case 'eviction.loaded':
      return `kept: ${podOf(fields)} ${willGo(fields, now)}`;
    case 'evictions.loaded':
      return `kept: and ${fields.more} more`;
    case 'eviction.canceled':
      return styleText('green', `${podOf(fields)} cancelled: ${fields.reason && CANCELLED[fields.reason]}`);
    case 'eviction.blocked':
      return styleText('yellow', `${podOf(fields)} is due and ${BLOCKED[fields.by]}`);
    case 'pod.evicted':
      return styleText('red', `${podOf(fields)} evicted (${fields.lateMs} ms after it fell due)`);
    case 'pod.evicted-externally':
      return `${podOf(fields)} was evicted by the built-in controller at ${moment(fields.deletedAt, now)}, ${dueBy(fields, now)}`;
    case 'pod.evicted-despite-hold':
      return styleText(
        'red',
        `${podOf(fields)} was evicted by the built-in controller, although it was ${wordsOf({ kind: fields.by }).label}`,
      );
    case 'pod.already-gone':
      return `${podOf(fields)} was gone already`;
    case 'eviction.would-evict':
      return styleText('magenta', `${podOf(fields)} would have been evicted, and is only observed`);
    case 'eviction.held':
      return styleText(
        'magenta',
        `${podOf(fields)} is due and ${fields.by ? wordsOf({ kind: fields.by }).label : 'held'}`,
      );
    case 'policy.applied':
      return `its policy was applied: ${fields.mode}`;
    case 'policy.kept':
      return `its policy was kept (${fields.mode}): ${KEPT[fields.file]}`;
    case 'rules.changed':
      return 'what governs it changed: all that is tainted is decided anew';
    case 'guard.tripped':
      return styleText('red', `the guard holds evictions: ${tripText(fields)}`);
    case 'guard.would-trip':
      return styleText('yellow', `the guard would hold evictions: ${tripText(fields)}`);
    case 'guard.released':
      return styleText(
        'green',
        `the guard holds them no longer, released by ${fields.by === 'itself' ? 'itself' : 'an operator'}`,
      );
    default:
      return undefined;
  }
}

const podOf = ({ namespace, pod }: PodFields): string => `${namespace}/${pod}`;

const CANCELLED: Readonly<Record<CancelReason, string>> = {
  'taint-removed': 'the taint was removed',
  'tolerated-forever': 'it tolerates the taint for ever now',
  'pod-gone': 'the pod is gone',
};

const BLOCKED = {
  budget: 'waits for its disruption budget',
  admission: 'is refused by an admission webhook or policy',
};

const KEPT = {
  unchanged: 'the file of --policy is as it was applied before, and somebody changed the policy since',
  older: 'another replica applied a newer file than the one of --policy',
};

function tellNode({ deletedAt, taints }: LogEvents['node.changed']): string {
  if (deletedAt !== undefined) return 'deleted; its last taints stand while it has pods';
  return taints.length === 0
    ? styleText('green', 'untainted')
    : styleText('yellow', `tainted ${taints.map(taintText).join(', ')}`);
}

function willGo({ fireAt, because }: EvictionFields, now: EpochMs): string {
  const seconds = Math.max(0, Math.round((fireAt - now) / 1000));
  const when = seconds === 0 ? 'goes now' : `will go at ${moment(fireAt, now)} (in ${seconds} s)`;
  return `${when} because of ${because.join(', ')}`;
}

function dueBy({ fireAt, because }: EvictionFields, now: EpochMs): string {
  if (because.length === 0) return 'and not due';
  return `due at ${moment(fireAt, now)} because of ${because.join(', ')}`;
}

function complaint({ event, fields }: LogLine): string {
  const { cluster: _cluster, node: _node, delta: _delta, reason, ...rest }: LogFields = fields;
  const details = Object.entries(rest).map(([name, value]) => {
    const isMoment = typeof value === 'number' && MOMENT.test(name);
    return ` ${name}=${isMoment ? dateAndTime(value).replace(' ', 'T') : String(value)}`;
  });
  const why = reason instanceof Error ? reason.message : String(reason ?? '');
  const told = `${details.join('')} ${why}`.trimEnd();
  return styleText('yellow', told === '' ? event : `${event}:${told}`);
}

/** Fields that hold a moment. */
const MOMENT = /^(at|since|.+At)$/;

/** `2026-01-31 23:59:59`, as the clock on the wall shows it. */
function dateAndTime(at: EpochMs): string {
  const onTheWall = at - new Date(at).getTimezoneOffset() * 60_000;
  return new Date(onTheWall).toISOString().slice(0, 19).replace('T', ' ');
}

/** Without the date, if that is today's. */
function moment(at: EpochMs, now: EpochMs): string {
  const [date, time] = dateAndTime(at).split(' ');
  return dateAndTime(now).startsWith(`${date} `) ? `${time}` : `${date} ${time}`;
}
