import { isIPv6 } from 'node:net';
import { clusterGate, isOn } from '#shared/eviction/gate.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { wordsOf } from '#shared/explain/gate-text.ts';
import type { ServiceStore } from '#shared/state/service-state.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { evictionFields } from '#shared/telemetry/log-events.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Returns the URLs of the probes and metrics, for the user who started the process. */
export const probesText = (host: string, port: number): string =>
  `Health and metrics: http://${isIPv6(host) ? `[${host}]` : host}:${port}/readyz, /metrics`;

/** Summarizes each cluster's rules, in one line for all clusters with the same summary. */
export function rulesLines(rules: ReadonlyMap<ClusterName, Rules>, now: EpochMs): readonly string[] {
  const names = new Map<string, ClusterName[]>();
  for (const [cluster, found] of rules) {
    const text = rulesText(found, now);
    names.set(text, [...(names.get(text) ?? []), cluster]);
  }
  return [...names].map(([text, clusters]) => `${clusters.join(', ')}: ${text}`);
}

function byText({ stops }: Rules, now: EpochMs): string {
  const stop = stops.find(({ until }) => isOn(until, now));
  return stop === undefined ? '' : ` by ${escapeForDisplay(stop.actor)} (${escapeForDisplay(stop.reason)})`;
}

function rulesText(rules: Rules, now: EpochMs): string {
  const gate = clusterGate(rules, now);
  if (!gate) return 'enforce mode, pods are evicted';
  if (gate.kind === 'observe') {
    const flag = rules.policyRevision === 0 ? 'add --enforce or ' : '';
    return `observe mode, no pods are evicted. To evict pods, ${flag}apply a policy (docs/reference/policy.md)`;
  }
  const { label, release } = wordsOf(gate);
  return `${label}${byText(rules, now)}, no pods are evicted. To resume, run ${release(gate, 'CLUSTER' as ClusterName)}`;
}

/** Nobody would read more. */
const LOGGED = 20;

/** Earliest deadlines first, then the number of further ones. Rejects with `StoreError`. */
export async function logCountdowns(store: Pick<ServiceStore, 'countdowns'>, log: Log): Promise<void> {
  const { total, soonest } = await store.countdowns(LOGGED);
  for (const { ref, record } of soonest) log.info('eviction.loaded', evictionFields(ref, record));
  if (total > soonest.length) log.info('evictions.loaded', { more: total - soonest.length });
}
