import { wholeBrake } from '#shared/eviction/brake.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { isOn } from '#shared/eviction/in-force.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { shownText } from '#shared/shown-text.ts';

/** What each cluster's rules come to, one line for all to whom the same applies. */
export function rulesLines(rules: ReadonlyMap<ClusterName, Rules>, now: EpochMs): readonly string[] {
  const names = new Map<string, ClusterName[]>();
  for (const [cluster, found] of rules) {
    const text = rulesText(found, now);
    names.set(text, [...(names.get(text) ?? []), cluster]);
  }
  return [...names].map(([text, clusters]) => `${clusters.join(', ')}: ${text}`);
}

/** By whom, and why. */
function byText({ stops }: Rules, now: EpochMs): string {
  const stop = stops.find(({ until }) => isOn(until, now));
  return stop === undefined ? '' : ` by ${shownText(stop.who)} (${shownText(stop.why)})`;
}

function rulesText(rules: Rules, now: EpochMs): string {
  const brake = wholeBrake(rules, now);
  switch (brake?.kind) {
    case 'observe':
      return `observing, nothing is deleted; turn to enforce with ${
        rules.policyRevision === 0 ? '--enforce, or ' : ''
      }a policy (docs/policy.md)`;
    case 'paused':
      return 'paused by policy, nothing is deleted';
    case 'stopped':
      return `stopped${byText(rules, now)}, nothing is deleted; taintward resume ${brake.scope === 'fleet' ? '--all ' : ''}goes on`;
    default:
      return 'enforcing: pods are evicted';
  }
}
