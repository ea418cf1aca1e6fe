import type { ClusterName } from '#shared/eviction/identity.ts';
import { PROBE_NODE, probeRef } from '#shared/eviction/probe.ts';
import { areApart, heldText } from '#shared/eviction/skew.ts';
import {
  EVICTING_PERMISSIONS,
  missingPermissions,
  neededUnder,
  permissionsNeededBy,
} from '#shared/kubernetes/permissions.ts';
import type { ProofStore } from '#shared/state/proofs.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { Age } from '#shared/time/age.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { EvictDeps, Proofs } from './ports.ts';

/** Time since the last probe after which proofs aren't needed. */
const PROBED_FOR_MS = 10 * 60_000;
/** Minimum interval between notes: a relay asks every 20 s, and an outage causes hundreds of passes. */
const NOTED_EACH_MS = 5_000;

export interface NotedProofsDeps extends Pick<EvictDeps, 'clock' | 'log'> {
  readonly notes: Pick<ProofStore, 'notedProbe' | 'notedPass'>;
}

/**
 * Notes proofs that evictions work, every few seconds, for clusters whose probes this process carries out: without a
 * takeover, that costs nothing. Never rejects: a missing note is, correctly, a missing proof.
 */
export class NotedProofs implements Proofs {
  readonly #deps: NotedProofsDeps;
  readonly #probed = new Map<ClusterName, Age>();
  readonly #noted = new Map<ClusterName, Age>();

  constructor(deps: NotedProofsDeps) {
    this.#deps = deps;
  }

  async probed(cluster: ClusterName, sentAt: EpochMs, failure: string | undefined): Promise<void> {
    const { notes, clock, log } = this.#deps;
    const now = clock.now();
    this.#probed.set(cluster, new Age(clock));
    if (failure !== undefined) log.warn('takeover.probe-failed', { cluster, error: failure });
    await this.#note(cluster, () => notes.notedProbe(cluster, sentAt, now, failure));
  }

  async passed(cluster: ClusterName): Promise<void> {
    const { notes, clock } = this.#deps;
    if (!isYounger(this.#probed.get(cluster), PROBED_FOR_MS)) return;
    if (isYounger(this.#noted.get(cluster), NOTED_EACH_MS)) return;
    this.#noted.set(cluster, new Age(clock));
    await this.#note(cluster, () => notes.notedPass(cluster, clock.now()));
  }

  async #note(cluster: ClusterName, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.#deps.log.warn('takeover.probe-failed', { cluster, error });
    }
  }
}

const isYounger = (age: Age | undefined, ms: number): boolean => age !== undefined && age.atMostMs <= ms;

/**
 * Takes every step of an eviction except the eviction itself. Resolves with the first that fails, in a few words;
 * `undefined`: none does. Never rejects. Rules that hold every pod fail no step: the built-in controller must not evict
 * these pods either.
 */
export async function whyNotEvicting(
  cluster: ClusterName,
  { rules, store, clusters, clock }: Pick<EvictDeps, 'rules' | 'store' | 'clusters' | 'clock'>,
): Promise<string | undefined> {
  let step = "the cluster's rules can't be read";
  try {
    const { policy } = await rules(cluster);
    step = "the stored state can't be read";
    await store.load(probeRef(cluster), clock.now(), []);
    step = "the cluster can't be reached";
    const api = await clusters.api(cluster);
    await api.getNode(PROBE_NODE);
    step = "the API server doesn't say which permissions the credentials have";
    const permissions = [
      ...neededUnder(policy, EVICTING_PERMISSIONS),
      ...permissionsNeededBy(policy).flatMap(({ permissions }) => permissions),
    ];
    const missing = await missingPermissions(api, permissions);
    if (missing.length > 0) return `the credentials lack the permission to ${missing.join(', ')}`;
    return areApart(api.skews) ? heldText(api.skews) : undefined;
  } catch (error) {
    return `${step}: ${errorMessage(error)}`;
  }
}
