import type { PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { DeletePreconditions, LivePod } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import type { EvictionAnswer } from '#shared/kubernetes/http/eviction-refusal.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface LeaderOnlyApiOptions {
  readonly clock: Clock;
  readonly installation: string;
  readonly mayAct: () => boolean;
}

/** An API server client that changes pods only while this replica is the leader. */
export class LeaderOnlyApi extends RestApi {
  readonly #mayAct: () => boolean;

  constructor(connection: Connection, { clock, installation, mayAct }: LeaderOnlyApiOptions) {
    super(connection, clock, installation);
    this.#mayAct = mayAct;
  }

  override async markDisrupted(
    pod: PodRef & Pick<LivePod, 'generation'>,
    uid: PodUid,
    now: EpochMs,
    allowed?: () => Promise<EpochMs>,
  ): Promise<LivePod> {
    this.#refuseIdle(`patch pods/status ${pod.namespace}/${pod.name}`);
    return super.markDisrupted(pod, uid, now, allowed);
  }

  override async deletePod(
    pod: PodRef,
    preconditions: DeletePreconditions,
    notAfter?: EpochMs,
  ): Promise<void> {
    this.#refuseIdle(`delete pods ${pod.namespace}/${pod.name}`);
    return super.deletePod(pod, preconditions, notAfter);
  }

  override async evictPod(
    pod: PodRef,
    preconditions: DeletePreconditions,
    notAfter?: EpochMs,
  ): Promise<EvictionAnswer> {
    this.#refuseIdle(`create pods/eviction ${pod.namespace}/${pod.name}`);
    return super.evictPod(pod, preconditions, notAfter);
  }

  #refuseIdle(what: string): void {
    if (this.#mayAct()) return;
    throw new ApiError(`Did not ${what}: this replica doesn't hold the lease.`, 0);
  }
}
