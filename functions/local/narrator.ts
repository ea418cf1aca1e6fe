import { stripVTControlCharacters, styleText } from 'node:util';
import type { EpochMs } from '#shared/eviction/identity.ts';
import { type Taint, taintText } from '#shared/taints/taint.ts';
import type { Log, LogFields } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';

type Severity = 'info' | 'warn' | 'error';

/**
 * A log for people: one line per change of state, with times of day. Shows what happens to nodes and pods and
 * what goes wrong; keeps quiet about the rest.
 */
export function narrator(clock: Clock, write: (line: string) => void): Log {
  const line =
    (severity: Severity) =>
    (event: string, fields: LogFields = {}) => {
      const told =
        tell(event, fields, clock.now()) ?? (severity === 'info' ? undefined : complaint(event, fields));
      if (told === undefined) return;
      const where = [fields['cluster'], fields['node']].filter((part) => part !== undefined).join(' ');
      write(`${styleText('dim', timeOfDay(clock.now()))} ${where ? `${where}  ` : ''}${told}`);
    };
  return { debug: () => undefined, info: line('info'), warn: line('warn'), error: line('error') };
}

function tell(event: string, fields: LogFields, now: EpochMs): string | undefined {
  const pod = `${fields['namespace']}/${fields['pod']}`;
  switch (event) {
    case 'relay.lease-taken':
      return undefined;
    case 'relay.synced':
      return `watching ${fields['nodes']} nodes (${fields['tainted']} tainted) and ${fields['pods']} pods`;
    case 'node.changed':
      return tellNode(fields);
    case 'eviction.scheduled':
      return `${pod} ${willGo(fields, now)}`;
    case 'eviction.rescheduled':
      return `${pod} now ${willGo(fields, now)}`;
    case 'eviction.cancelled':
      return styleText(
        'green',
        `${pod} cancelled: ${CANCELLED[String(fields['reason'])] ?? fields['reason']}`,
      );
    case 'eviction.done':
      return styleText('red', `${pod} evicted (${fields['lateMs']} ms after it fell due)`);
    case 'eviction.gone':
      return `${pod} was gone already`;
    default:
      return undefined;
  }
}

const CANCELLED: Readonly<Record<string, string>> = {
  'taint-removed': 'the taint was removed',
  'tolerated-forever': 'it tolerates the taint for ever now',
  'pod-gone': 'the pod is gone',
};

function tellNode(fields: LogFields): string {
  if (fields['deletedAt'] !== undefined) return 'deleted; its last taints stand while it has pods';
  const taints = fields['taints'] as readonly Taint[];
  return taints.length === 0
    ? styleText('green', 'untainted')
    : styleText('yellow', `tainted ${taints.map(taintText).join(', ')}`);
}

function willGo(fields: LogFields, now: EpochMs): string {
  const fireAt = fields['fireAt'] as EpochMs;
  const because = (fields['because'] as readonly string[]).join(', ');
  const seconds = Math.max(0, Math.round((fireAt - now) / 1000));
  const when = seconds === 0 ? 'goes now' : `will go at ${dayAndTime(fireAt, now)} (in ${seconds} s)`;
  return `${when} because of ${because}`;
}

function complaint(event: string, fields: LogFields): string {
  const { cluster: _cluster, node: _node, reason, ...rest } = fields;
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
