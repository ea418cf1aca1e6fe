import type { ClimateName } from './climates.ts';
import type { Area } from './planted-defects.ts';

/** A defect in the text of the service itself: one place in one of its files says something else. */
export interface PlantedSource {
  readonly area: Area;
  /** Where it shows soonest. */
  readonly climate: ClimateName;
  readonly governed?: boolean;
  readonly file: string;
  /** What stands there, once. */
  readonly instead: string;
  /** What the service is played with. */
  readonly says: string;
}

export const PLANTED_SOURCES: Readonly<Record<string, PlantedSource>> = {
  'permits of a workload are taken whatever others took meanwhile': {
    area: 'adapters',
    climate: 'limited',
    governed: true,
    file: 'shared/clusters/dynamodb-permits.ts',
    instead: ', expected: { revision } }',
    says: ' }',
  },
  'a permit of a workload counts for as long as it lasts': {
    area: 'policy',
    climate: 'limited',
    governed: true,
    file: 'shared/eviction/permits.ts',
    instead: 'at + windowMs + PERMIT_LASTS_MS;',
    says: 'at + PERMIT_LASTS_MS;',
  },
  'the last toleration that matches counts, and not the first': {
    area: 'core',
    climate: 'brief',
    file: 'shared/taints/deadline.ts',
    instead: 'const at = tolerations.findIndex(',
    says: 'const at = tolerations.findLastIndex(',
  },
  'the longest time that a pod tolerates counts, and not the shortest': {
    area: 'core',
    climate: 'brief',
    file: 'shared/taints/deadline.ts',
    instead: 'atMs < first.atMs',
    says: 'atMs > first.atMs',
  },
  'seconds below zero are for ever': {
    area: 'core',
    climate: 'brief',
    file: 'shared/taints/deadline.ts',
    instead: 'return seconds > 0n ? seconds : 0n;',
    says: 'return seconds >= 0n ? seconds : undefined;',
  },
  'a pod’s time begins with the taint, though it came later': {
    area: 'core',
    climate: 'brief',
    file: 'shared/taints/deadline.ts',
    instead: 'BigInt(Math.max(limit.taint.since, podSince))',
    says: 'BigInt(limit.taint.since)',
  },
  'what Kubernetes dates by the second was at its beginning': {
    area: 'core',
    climate: 'brief',
    file: 'shared/eviction/facts.ts',
    instead: 'Math.max(named, Math.min(seenAt, named + TRUNCATED_MS));',
    says: 'named;',
  },
  'an effect that a toleration names does not count': {
    area: 'core',
    climate: 'brief',
    file: 'shared/taints/match.ts',
    instead: 'if (toleration.effect && toleration.effect !== taint.effect) return false;',
    says: '',
  },
  'a toleration without a key matches no taint': {
    area: 'core',
    climate: 'brief',
    file: 'shared/taints/match.ts',
    instead: 'if (toleration.key && toleration.key !== taint.key)',
    says: 'if (toleration.key !== taint.key)',
  },
  'a toleration without an operator matches any value': {
    area: 'core',
    climate: 'brief',
    file: 'shared/taints/match.ts',
    instead: "case 'Equal':\n      return taintValue === tolerationValue;",
    says: "case 'Equal':\n      return true;",
  },
  'a pod that may stay by now goes all the same': {
    area: 'core',
    climate: 'slow',
    file: 'shared/eviction/judge.ts',
    instead: "if (!deadline) return { kind: 'cancel', because: whyCancelled(record, taints) };",
    says: "if (!deadline) return { kind: 'evict', by: 'delete', unlimited: false };",
  },
  'no second judgement after the condition was set': {
    area: 'core',
    climate: 'slow',
    governed: false,
    file: 'functions/evict/pass.ts',
    instead:
      'const view = await this.#look();\n        const verdict = await this.#verdict(view, record, shown);',
    says: "const view = await this.#look();\n        const verdict = { kind: 'evict', by: means } as Verdict & { kind: 'evict' };",
  },
  'a look is as young as what was read of the store beside it': {
    area: 'core',
    climate: 'belated',
    file: 'functions/evict/pass.ts',
    instead: 'Math.min(view.answeredAt + LOOK_MAX_AGE_MS, permittedTo);',
    says: 'Math.min(this.#deps.clock.now() + LOOK_MAX_AGE_MS, permittedTo);',
  },
  'a commit writes the first of its records': {
    area: 'adapters',
    climate: 'brief',
    file: 'shared/store/dynamodb-store.ts',
    instead: '...schedule.filter(({ uid }) => !isNoted.has(uid))',
    says: '...schedule.slice(0, 1).filter(({ uid }) => !isNoted.has(uid))',
  },
  'a query reads its first page': {
    area: 'adapters',
    climate: 'gusty',
    file: 'shared/store/dynamodb-table.ts',
    instead: 'yield (value.Items ?? []).map(fromAttributes);',
    says: 'yield (value.Items ?? []).map(fromAttributes);\n      return;',
  },
  'a timer of more than a quarter of an hour is not armed': {
    area: 'adapters',
    climate: 'fair',
    file: 'shared/timers/aws-timers.ts',
    instead: '} else if (at <= LAST_SCHEDULABLE_AT) {',
    says: '} else if (at <= now) {',
  },
  'a schedule is exact, and does not come early': {
    area: 'adapters',
    climate: 'fair',
    file: 'shared/timers/aws-timers.ts',
    instead: 'new Date(at - SCHEDULE_LEAD_SECONDS * 1000)',
    says: 'new Date(at)',
  },
  'a lease that is taken keeps its epoch': {
    area: 'adapters',
    climate: 'shifting',
    file: 'shared/clusters/dynamodb-leases.ts',
    instead: 'const epoch = nextEpoch(found?.epoch, now);',
    says: 'const epoch = found?.epoch ?? nextEpoch(undefined, now);',
  },
  'nobody is told that a pod tolerates something else': {
    area: 'relay',
    climate: 'brief',
    file: 'functions/watch-relay/cluster-view.ts',
    instead: 'if (before && isSame(before, seen)) return [];',
    says: 'if (before) return [];',
  },
  'nobody is told that a node has no taints any more': {
    area: 'relay',
    climate: 'brief',
    file: 'functions/watch-relay/cluster-view.ts',
    instead: 'return before.taints.length > 0 ? [{ node: name }] : [];',
    says: 'return [];',
  },
  'the taints of a deleted node are forgotten at once': {
    area: 'relay',
    climate: 'brief',
    file: 'functions/watch-relay/cluster-view.ts',
    instead: 'this.#nodes.set(name, { ...before, deletedAt: now });',
    says: 'this.#nodes.delete(name);',
  },
  'what is excluded by its namespace is evicted': {
    area: 'policy',
    climate: 'wide',
    governed: true,
    file: 'shared/eviction/brake.ts',
    instead: '(namespaces?.includes(pod.record.namespace) ?? true)',
    says: '(namespaces === undefined)',
  },
  'a mark that waited for its turn is sent, however long ago it was allowed': {
    area: 'policy',
    climate: 'queued',
    governed: true,
    file: 'functions/evict/pass.ts',
    instead:
      'if (rules !== found.rules) {\n      const verdict = judge(found.stored, found.look, rules)(record, pod);',
    says: 'if (rules === found.rules) {\n      const verdict = judge(found.stored, found.look, rules)(record, pod);',
  },
  'permits come four times as often as the rate says': {
    area: 'policy',
    climate: 'paced',
    governed: true,
    file: 'shared/eviction/rate.ts',
    instead: 'permits + (this.#at - at) * this.#perMs',
    says: 'permits + (this.#at - at) * this.#perMs * 4',
  },
  'a pause never ends by itself': {
    area: 'policy',
    climate: 'fair',
    governed: true,
    file: 'shared/eviction/in-force.ts',
    instead: "mode === 'paused' && !isOn(pausedUntil, now) ? 'enforce' : mode",
    says: 'mode',
  },
};
