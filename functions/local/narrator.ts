import { stripVTControlCharacters, styleText } from 'node:util';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { CancelReason } from '#shared/eviction/records.ts';
import { taintText } from '#shared/taints/taint.ts';
import { type Log, type LogFields, logTo } from '#shared/telemetry/log.ts';
import type { EvictionFields, LogEvents, LogLine, PodFields } from '#shared/telemetry/log-events.ts';
import type { Clock } from '#shared/time/clock.ts';

/**
 * A log for people: one line per change of state, with times of day. Shows what happens to nodes and pods and
 * what goes wrong; keeps quiet about the rest.
 */
export function narrator(clock: Clock, write: (line: string) => void): Log {
  return logTo((severity, line) => {
    if (severity === 'debug') return;
    const told = tell(line, clock.now()) ?? (severity === 'info' ? undefined : complaint(line));
    if (told === undefined) return;
    const { cluster, node }: LogFields = line.fields;
    const where = [cluster, node].filter((part) => part !== undefined).join(' ');
    write(`${styleText('dim', timeOfDay(clock.now()))} ${where ? `${where}  ` : ''}${told}`);
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
    case 'eviction.cancelled':
      return styleText('green', `${podOf(fields)} cancelled: ${fields.reason && CANCELLED[fields.reason]}`);
    case 'eviction.done':
      return styleText('red', `${podOf(fields)} evicted (${fields.lateMs} ms after it fell due)`);
    case 'eviction.gone':
      return `${podOf(fields)} was gone already`;
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

function tellNode({ deletedAt, taints }: LogEvents['node.changed']): string {
  if (deletedAt !== undefined) return 'deleted; its last taints stand while it has pods';
  return taints.length === 0
    ? styleText('green', 'untainted')
    : styleText('yellow', `tainted ${taints.map(taintText).join(', ')}`);
}

function willGo({ fireAt, because }: EvictionFields, now: EpochMs): string {
  const seconds = Math.max(0, Math.round((fireAt - now) / 1000));
  const when = seconds === 0 ? 'goes now' : `will go at ${dayAndTime(fireAt, now)} (in ${seconds} s)`;
  return `${when} because of ${because.join(', ')}`;
}

function complaint({ event, fields }: LogLine): string {
  const { cluster: _cluster, node: _node, reason, ...rest }: LogFields = fields;
  const details = Object.entries(rest).map(([name, value]) => ` ${name}=${String(value)}`);
  const why = reason instanceof Error ? reason.message : String(reason ?? '');
  return styleText('yellow', `${event}:${details.join('')} ${why}`.trimEnd());
}

const timeOfDay = (at: EpochMs): string => new Date(at).toTimeString().slice(0, 8);

function dayAndTime(at: EpochMs, now: EpochMs): string {
  const day = new Date(at).toDateString();
  return day === new Date(now).toDateString() ? timeOfDay(at) : new Date(at).toISOString();
}

/** Writes to standard output, in colour on a terminal only. */
export function printLine(line: string): void {
  process.stdout.write(`${process.stdout.isTTY ? line : stripVTControlCharacters(line)}\n`);
}
