import { getHeapStatistics } from 'node:v8';
import type { PodFacts } from '#shared/eviction/facts.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';

const HEAP_BYTES = getHeapStatistics().heap_size_limit;
/** For the pods of one cluster. A relay of 512 MiB has room for 150,000, for which Kubernetes is made: they count as some 75 MiB. */
const MAX_KEPT_BYTES = HEAP_BYTES / 3;
/** For those that were listed or heard, and wait for the rest of a list. */
const MAX_PASSING_BYTES = HEAP_BYTES / 6;
/** What a pod takes beside its texts, and a toleration. */
const POD_BYTES = 256;
const TOLERATION_BYTES = 16;

/** What of a pod takes room. */
type Roomy = Pick<PodFacts, 'uid' | 'namespace' | 'name' | 'owner'> & {
  readonly tolerations?: PodFacts['tolerations'];
  readonly leaving?: { readonly finalizers: readonly string[] };
};

/** Says how much of a relay's memory the pods of one cluster take, so that none takes that of its neighbours. */
export class PodRoom {
  readonly #kept: () => Iterable<Roomy>;
  /** At most: what was kept when that was counted last, and all that came since. */
  #bytes = 0;

  /** `kept`: all that is kept now. It is asked only where what came since could have filled the room. */
  constructor(kept: () => Iterable<Roomy>) {
    this.#kept = kept;
  }

  /** These are about to be kept, perhaps in place of older states of them. Throws `ApiError` when there is no room for them. */
  admit(pods: readonly LivePod[]): void {
    const bytes = sumOf(pods, bytesOf);
    if (this.#bytes + bytes > MAX_KEPT_BYTES) {
      this.#bytes = sumOf(this.#kept(), bytesOf);
      if (this.#bytes + bytes > MAX_KEPT_BYTES) throw tooMany(MAX_KEPT_BYTES, 'a third');
    }
    this.#bytes += bytes;
  }
}

/** Says how much the pods of one cluster take that were listed or heard, and wait for the rest of a list. */
export class PassingPods {
  #bytes = 0;

  /** How much is to be given back for it; `undefined`: there is no room for it. */
  take(pod: LivePod): number | undefined {
    const bytes = passingBytes(pod);
    if (this.#bytes + bytes > MAX_PASSING_BYTES) return undefined;
    this.#bytes += bytes;
    return bytes;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** Of a list that has more pods than there is room for. */
export const tooManyPassing = (): ApiError => tooMany(MAX_PASSING_BYTES, 'a sixth');

const tooMany = (most: number, part: string): ApiError =>
  new ApiError(
    `The pods of its tainted nodes exceed ${Math.floor(most / 2 ** 20)} MiB, ${part} of the heap. If the cluster really has so many pods, give this process more memory.`,
    0,
  );

const bytesOf = ({ uid, namespace, name, owner, tolerations = [], leaving }: Roomy): number =>
  POD_BYTES +
  uid.length +
  namespace.length +
  name.length +
  (owner ? owner.kind.length + owner.name.length : 0) +
  sumOf(
    tolerations,
    ({ key = '', operator = '', value = '', effect = '' }) =>
      TOLERATION_BYTES + key.length + operator.length + value.length + effect.length,
  ) +
  sumOf(leaving?.finalizers ?? [], ({ length }) => length);

/** Its labels are kept until it is told of as it is. */
const passingBytes = (pod: LivePod): number =>
  bytesOf(pod) + sumOf(Object.entries(pod.labels ?? {}), ([key, value]) => key.length + value.length);

function sumOf<T>(all: Iterable<T>, of: (each: T) => number): number {
  let sum = 0;
  for (const each of all) sum += of(each);
  return sum;
}
