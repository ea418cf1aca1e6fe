import * as z from 'zod';
import { podUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type { EndedPod, EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { firstFault, readAs } from '#shared/text/read-as.ts';
import { schemaOf } from '#shared/text/schema-of.ts';
import { type EpochMs, epochMs } from '#shared/time/epoch-ms.ts';
import { StoreError } from './store.ts';

/** Days for which the history of evictions and the audit are kept by default. */
export const HISTORY_DAYS = 7;
/** The minimum of these days, because ends are also tombstones. */
export const MIN_HISTORY_DAYS = 1;
export const MAX_HISTORY_DAYS = 3650;

const DAY_SECONDS = 24 * 3600;

/** Seconds for which a node without live evictions is kept. */
export const NODE_SECONDS = 7 * DAY_SECONDS;

/**
 * Seconds from a record's deadline, or its write if later, until TTL removes it, and `expiry` turns it into a due
 * message: a safety net below the checks of the node every few minutes.
 */
export const SCHEDULED_GRACE_SECONDS = DAY_SECONDS;

/** JavaScript's last second. Deadlines are limited to it, so the grace period does not exceed it. */
const LAST_EPOCH_SECONDS = 8.64e12;

/** Seconds for which a pod with a failed or held eviction is left alone, unless something about it changes. */
const LEFT_ALONE_SECONDS = 30 * 24 * 3600;

export const historyTtl = (now: EpochMs, days: number): number => ttlAfter(now, days * DAY_SECONDS);

export const historyBefore = (now: EpochMs, days: number): EpochMs => now - days * DAY_SECONDS * 1000;

export const nodeTtl = (now: EpochMs): number => ttlAfter(now, NODE_SECONDS);

/**
 * When a record is removed, in epoch seconds, if its pod is not evicted; `expiry` then processes it. Failed and held
 * ones are kept longer, because their pods are left alone as long as the record exists.
 */
export function scheduledTtl({ dueAt, gaveUpAt, held }: EvictionRecord, now: EpochMs): number {
  const leftAlone = gaveUpAt !== undefined || held !== undefined;
  return ttlAfter(Math.max(dueAt, now), leftAlone ? LEFT_ALONE_SECONDS : SCHEDULED_GRACE_SECONDS);
}

const ttlAfter = (moment: EpochMs, seconds: number): number =>
  Math.min(Math.ceil(moment / 1000) + seconds, LAST_EPOCH_SECONDS);

const text = z.string().min(1);
const version = z.object({ epoch: z.int().nonnegative(), sequence: z.int().nonnegative() });

const known = z.enum(['added', 'preexisting']);

const timedTaint = z.object({
  key: text,
  value: z.string().exactOptional(),
  effect: z.string(),
  virtual: z.literal(true).exactOptional(),
  timeAdded: epochMs.exactOptional(),
  since: epochMs,
  known,
});

const nodeRetry = z.object({
  attempts: z.int().nonnegative(),
  nextTryAt: epochMs,
  since: epochMs,
  error: z.string(),
  everything: z.boolean(),
});

/** The stored state of a node. Unknown fields, of a newer release, are ignored and kept. */
export const nodeStateSchema = z
  .object({
    taints: z.array(timedTaint),
    version,
    observedAt: epochMs,
    podsVersion: version.exactOptional(),
    deletedAt: epochMs.exactOptional(),
    taintsStamp: z.string().exactOptional(),
    guardRevision: z.int().nonnegative().exactOptional(),
    retry: nodeRetry.exactOptional(),
    outage: nodeRetry.extend({ triedAt: epochMs }).exactOptional(),
    blocked: z.object({ attempts: z.int().positive(), nextTryAt: epochMs }).exactOptional(),
  })
  .apply(schemaOf<NodeState>());

export const revisionSchema = z.int().positive();

const reason = z.object({
  taint: z.object({ key: text, value: z.string().exactOptional(), effect: z.string() }),
  since: epochMs,
  known,
  toleration: z.int().nonnegative().exactOptional(),
  seconds: z.int().nonnegative(),
  policy: z.string().exactOptional(),
});

const why = { dueAt: epochMs, causes: z.array(reason) };
const who = { uid: text.transform(podUid), namespace: text, name: text };
const pod = { ...who, podSince: epochMs, ...why, version };

const until = epochMs.exactOptional();
const ofTaints = { revision: z.int().nonnegative(), guardRevision: z.int().nonnegative(), until };
const gate = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('observe') }),
  z.object({
    kind: z.literal('stopped'),
    scope: z.enum(['cluster', 'fleet']),
    id: z.string().exactOptional(),
    until,
  }),
  z.object({ kind: z.literal('hold'), id: text, until }),
  z.object({ kind: z.literal('excluded'), ...ofTaints }),
  z.object({
    kind: z.literal('guard'),
    scope: z.enum(['cluster', 'zone', 'customTaints']),
    zone: text.exactOptional(),
    trippedAt: epochMs,
    ...ofTaints,
  }),
  z.object({ kind: z.literal('node-alive'), renewedAt: epochMs, ...ofTaints, until: epochMs }),
  z.object({
    kind: z.literal('workload-limit'),
    workload: text,
    count: z.int().positive().exactOptional(),
    windowMs: z.number().positive(),
    ...ofTaints,
  }),
  z.object({ kind: z.literal('recreated') }),
]);

export const recordSchema = z
  .object({
    ...pod,
    owner: z.object({ kind: text, name: text }).exactOptional(),
    startedAt: epochMs,
    failure: z.object({ since: epochMs, error: z.string() }).exactOptional(),
    gaveUpAt: epochMs.exactOptional(),
    held: z.object({ by: gate, since: epochMs, until }).exactOptional(),
    blocked: z
      .object({
        since: epochMs,
        nextTryAt: epochMs,
        by: z.literal('admission').exactOptional(),
        reason: z.string(),
      })
      .exactOptional(),
    notBefore: epochMs.exactOptional(),
    turnAt: epochMs.exactOptional(),
    drains: z.literal(true).exactOptional(),
    recreated: z.literal(true).exactOptional(),
  })
  .apply(schemaOf<EvictionRecord>());

export const endedSchema = z
  .object({
    ...pod,
    outcome: z.enum(['evicted', 'already-gone', 'canceled', 'failed', 'unregistered', 'would-evict']),
    delayMs: z.int().nonnegative().exactOptional(),
    cancelReason: z.enum(['taint-removed', 'tolerated-forever', 'pod-gone']).exactOptional(),
    error: z.string().exactOptional(),
    startedAt: epochMs.exactOptional(),
    deleted: z.object({ at: epochMs, by: z.enum(['taint-manager', 'other']) }).exactOptional(),
    by: gate.exactOptional(),
    endedAt: epochMs,
  })
  .apply(schemaOf<EndedPod>());

const noted = { ...who, ...why };

export const notedSchema = z
  .discriminatedUnion('event', [
    z.object({ ...noted, event: z.literal('rescheduled'), from: z.object(why) }),
    z.object({ ...noted, event: z.enum(['held', 'would-evict', 'released']), by: gate }),
    z.object({ ...noted, event: z.enum(['blocked', 'failed']), error: z.string() }),
  ])
  .apply(schemaOf<Noted>());

/** Throws `StoreError` naming `what` and the first invalid field: no decision is made on unreadable data. */
export function parseStored<T>(schema: z.ZodType<T>, stored: unknown, what: string): T {
  const found = readAs(schema, stored);
  if (found.success) return found.data;
  const { field, fault } = firstFault(found.error);
  throw unreadable(what, `${field || 'value'}: ${fault}`);
}

/** Parses JSON that was stored as text, and validates it as {@link parseStored} does. */
export function parseStoredText<T>(schema: z.ZodType<T>, text: string, what: string): T {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw unreadable(what, 'value: is not JSON');
  }
  return parseStored(schema, json, what);
}

/** Returns the error for data that no known release writes. `what` may contain keys from untrusted writers. */
export const unreadable = (what: string, why: string): StoreError =>
  new StoreError(
    `The stored ${escapeForDisplay(what, 600)} cannot be read (${why}): was it written by a newer release, or changed by hand?`,
  );
