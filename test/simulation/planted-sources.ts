import type { ClimateName } from './climates.ts';
import type { HistoryKind } from './history-kinds.ts';
import type { Area } from './planted-defects.ts';

/** A defect in the text of the service itself: one place in one of its files is replaced. */
export interface PlantedSource {
  readonly area: Area;
  /** The histories in which the defect shows soonest: those of a climate, or those of another kind. */
  readonly shows:
    | { readonly climate: ClimateName; readonly governed?: boolean }
    | { readonly kind: HistoryKind };
  readonly file: string;
  /** The original text, which occurs once in the file. */
  readonly instead: string;
  /** The text that replaces it. */
  readonly planted: string;
}

export const PLANTED_SOURCES: Readonly<Record<string, PlantedSource>> = {
  'permits of a workload are taken whatever others took meanwhile': {
    area: 'adapters',
    shows: { climate: 'limited', governed: true },
    file: 'shared/state/dynamodb/dynamodb-permits.ts',
    instead: ', expected: { revision } }',
    planted: ' }',
  },
  'a permit of a workload counts for as long as it lasts': {
    area: 'policy',
    shows: { climate: 'limited', governed: true },
    file: 'shared/eviction/permits.ts',
    instead: 'at + windowMs + PERMIT_LASTS_MS;',
    planted: 'at + PERMIT_LASTS_MS;',
  },
  'the last toleration that matches counts, and not the first': {
    area: 'core',
    shows: { climate: 'brief' },
    file: 'shared/taints/deadline.ts',
    instead: 'const at = tolerations.findIndex(',
    planted: 'const at = tolerations.findLastIndex(',
  },
  'the longest time that a pod tolerates counts, and not the shortest': {
    area: 'core',
    shows: { climate: 'brief' },
    file: 'shared/taints/deadline.ts',
    instead: 'atMs < first.atMs',
    planted: 'atMs > first.atMs',
  },
  'seconds below zero are for ever': {
    area: 'core',
    shows: { climate: 'brief' },
    file: 'shared/taints/deadline.ts',
    instead: 'return seconds > 0n ? seconds : 0n;',
    planted: 'return seconds >= 0n ? seconds : undefined;',
  },
  'a pod’s time begins with the taint, though it came later': {
    area: 'core',
    shows: { climate: 'brief' },
    file: 'shared/taints/deadline.ts',
    instead: 'BigInt(Math.max(limit.taint.since, podSince))',
    planted: 'BigInt(limit.taint.since)',
  },
  'what Kubernetes dates by the second was at its beginning': {
    area: 'core',
    shows: { climate: 'brief' },
    file: 'shared/eviction/facts.ts',
    instead: 'Math.max(named, Math.min(seenAt, named + TRUNCATED_MS));',
    planted: 'named;',
  },
  'an effect that a toleration names does not count': {
    area: 'core',
    shows: { climate: 'brief' },
    file: 'shared/taints/match.ts',
    instead: 'if (toleration.effect && toleration.effect !== taint.effect) return false;',
    planted: '',
  },
  'a toleration without a key matches no taint': {
    area: 'core',
    shows: { climate: 'brief' },
    file: 'shared/taints/match.ts',
    instead: 'if (toleration.key && toleration.key !== taint.key)',
    planted: 'if (toleration.key !== taint.key)',
  },
  'a toleration without an operator matches any value': {
    area: 'core',
    shows: { climate: 'brief' },
    file: 'shared/taints/match.ts',
    instead: "case 'Equal':\n      return taintValue === tolerationValue;",
    planted: "case 'Equal':\n      return true;",
  },
  'a pod that may stay by now goes all the same': {
    area: 'core',
    shows: { climate: 'slow' },
    file: 'shared/eviction/evaluate.ts',
    instead: "if (!deadline) return { kind: 'cancel', because: whyCanceled(record, taints) };",
    planted: "if (!deadline) return { kind: 'evict', by: 'delete', unlimited: false };",
  },
  'a pod is marked, whatever the look before shows': {
    area: 'core',
    shows: { climate: 'slow', governed: false },
    file: 'shared/engine/evict/evict-pod.ts',
    instead: "if (verdict.kind !== 'evict') return verdict;\n      if (!pod) return GONE;",
    planted:
      "if (verdict.kind === 'cancel') verdict = { kind: 'evict', by: 'delete', unlimited: false };\n      if (verdict.kind !== 'evict') return verdict;\n      if (!pod) return GONE;",
  },
  'no second judgement after the condition was set': {
    area: 'core',
    shows: { climate: 'slow', governed: false },
    file: 'shared/engine/evict/evict-pod.ts',
    instead:
      'const view = await this.#reader.recent(reads === 0 ? YOUNG_MS : 0);\n        const verdict = await this.#reader.decide(view, record, shown);',
    planted:
      "const view = await this.#reader.recent(reads === 0 ? YOUNG_MS : 0);\n        const verdict = { kind: 'evict', by: means } as Verdict & { kind: 'evict' };",
  },
  'a look is as young as what was read of the store beside it': {
    area: 'core',
    shows: { climate: 'belated' },
    file: 'shared/engine/evict/evict-pod.ts',
    instead: 'Math.min(view.answeredAt + NODE_MAX_AGE_MS, permitted);',
    planted: 'Math.min(this.#scope.clock.now() + NODE_MAX_AGE_MS, permitted);',
  },
  'a commit writes the first of its records': {
    area: 'adapters',
    shows: { climate: 'brief' },
    file: 'shared/state/dynamodb/dynamodb-store.ts',
    instead: '...schedule.filter(({ uid }) => !isNoted.has(uid))',
    planted: '...schedule.slice(0, 1).filter(({ uid }) => !isNoted.has(uid))',
  },
  'a query reads its first page': {
    area: 'adapters',
    shows: { climate: 'gusty' },
    file: 'shared/state/dynamodb/dynamodb-table.ts',
    instead: 'for await (const { Items = [] } of pages) yield Items.map(fromAttributes);',
    planted: 'for await (const { Items = [] } of pages) return void (yield Items.map(fromAttributes));',
  },
  'a timer of more than a quarter of an hour is not armed': {
    area: 'adapters',
    shows: { climate: 'fair' },
    file: 'shared/aws/aws-timers.ts',
    instead: '} else if (at <= LAST_SCHEDULABLE_AT) {',
    planted: '} else if (at <= now) {',
  },
  'a schedule is exact, and does not come early': {
    area: 'adapters',
    shows: { climate: 'fair' },
    file: 'shared/aws/aws-timers.ts',
    instead: 'new Date(at - SCHEDULE_LEAD_SECONDS * 1000)',
    planted: 'new Date(at)',
  },
  'a lease that is taken keeps its epoch': {
    area: 'adapters',
    shows: { climate: 'shifting' },
    file: 'shared/state/lease.ts',
    instead: 'const epoch = nextEpoch(found?.epoch, now);',
    planted: 'const epoch = found?.epoch ?? nextEpoch(undefined, now);',
  },
  'nobody is told that a pod tolerates something else': {
    area: 'relay',
    shows: { climate: 'brief' },
    file: 'shared/engine/watch/cluster-view.ts',
    instead: 'if (before && isSame(before, seen)) return [];',
    planted: 'if (before) return [];',
  },
  'nobody is told that a node has no taints any more': {
    area: 'relay',
    shows: { climate: 'brief' },
    file: 'shared/engine/watch/cluster-view.ts',
    instead: 'return before.taints.length > 0 ? [{ node: name }] : [];',
    planted: 'return [];',
  },
  'the taints of a deleted node are forgotten at once': {
    area: 'relay',
    shows: { climate: 'brief' },
    file: 'shared/engine/watch/cluster-view.ts',
    instead: 'this.#nodes.set(name, { ...before, deletedAt: this.latest(now) });',
    planted: 'this.#nodes.delete(name);',
  },
  'what is excluded by its namespace is evicted': {
    area: 'policy',
    shows: { climate: 'wide', governed: true },
    file: 'shared/eviction/gate.ts',
    instead:
      '(namespaces === undefined || namespaces.some((pattern) => matchesPattern(pattern, namespace))) &&',
    planted: 'namespaces === undefined &&',
  },
  'a mark that waited for its turn is sent, however long ago it was allowed': {
    area: 'policy',
    shows: { climate: 'queued', governed: true },
    file: 'shared/engine/evict/evict-pod.ts',
    instead: 'if (current !== found) {\n        const verdict = current.verdict(record, pod);',
    planted: 'if (current === found) {\n        const verdict = current.verdict(record, pod);',
  },
  'permits come four times as often as the rate says': {
    area: 'policy',
    shows: { climate: 'paced', governed: true },
    file: 'shared/eviction/rate.ts',
    instead: 'permits + (this.#at - at) * this.#perMs',
    planted: 'permits + (this.#at - at) * this.#perMs * 4',
  },
  'a turn is armed and not stored': {
    area: 'policy',
    shows: { climate: 'paced', governed: true },
    file: 'shared/eviction/outcome.ts',
    instead: 'waits.turnAt ?? 0) <= now)',
    planted: 'waits.turnAt ?? 0) <= 0)',
  },
  'a second sees the permits of a burst and those of its own': {
    area: 'policy',
    shows: { climate: 'metered', governed: true },
    file: 'shared/state/send-window.ts',
    instead: 'this.#deletes.length < Math.ceil(perSecond);',
    planted: 'this.#deletes.length < 2 * Math.ceil(perSecond);',
  },
  'a stop never ends by itself': {
    area: 'policy',
    shows: { climate: 'fair', governed: true },
    file: 'shared/eviction/gate.ts',
    instead: 'const stop = stops.find(({ until }) => isOn(until, now));',
    planted: 'const [stop] = stops;',
  },
  'evict judges deadlines by its own clock': {
    area: 'core',
    shows: { kind: 'takeovers' },
    file: 'shared/eviction/evaluate.ts',
    instead: 'const earliest = earliestNow(observation.at, skews);',
    planted: 'const earliest = observation.at;',
  },
  'the heartbeat goes on without a new proof': {
    area: 'relay',
    shows: { kind: 'takeovers' },
    file: 'shared/aws/relay/probing-prover.ts',
    instead: 'if (!proven?.isNews) return { unproven: await this.#stage(cluster, probes) };',
    planted: 'if (!proven?.isNews) return { asOf: this.#deps.clock.now() };',
  },
  'the heartbeat is as old as its renewal, and not as the proof': {
    area: 'relay',
    shows: { kind: 'takeovers' },
    file: 'shared/engine/watch/takeover-heartbeat.ts',
    instead: 'Math.min(beganAt, proof.asOf) + (skewMs ?? 0)',
    planted: 'clock.now() + (skewMs ?? 0)',
  },
  'pods that are not listed count as evicted': {
    area: 'core',
    shows: { kind: 'takeovers' },
    file: 'shared/eviction/stalled.ts',
    instead: "if (!pods) return { kind: 'unlisted', node };",
    planted: 'if (!pods) return undefined;',
  },
  'a probe asks for no permission': {
    area: 'relay',
    shows: { kind: 'takeovers' },
    file: 'shared/engine/evict/proofs.ts',
    instead: 'if (missing.length > 0) return',
    planted: 'if (missing.length < 0) return',
  },
  'a probe asks nobody for the time': {
    area: 'relay',
    shows: { kind: 'takeovers' },
    file: 'shared/engine/evict/proofs.ts',
    instead: 'return areApart(api.skews) ? heldText(api.skews) : undefined;',
    planted: 'return undefined;',
  },
  'nodes that are down are not looked at before a heartbeat': {
    area: 'relay',
    shows: { kind: 'takeovers' },
    file: 'shared/engine/watch/takeover-heartbeat.ts',
    instead: 'whyNotNow(takeover, deps) ?? (await deps.whyStalled(takeover.keys));',
    planted: 'whyNotNow(takeover, deps);',
  },
};
