/**
 * Merges sorted sequences into one, reading each only as far as it is asked for. Rejects with the first
 * sequence's error that is met.
 */
export async function* mergeSorted<T>(
  sequences: readonly AsyncIterable<T>[],
  compare: (a: T, b: T) => number,
): AsyncGenerator<T> {
  const iterators = sequences.map((sequence) => sequence[Symbol.asyncIterator]());
  const heads = await Promise.all(iterators.map((iterator) => headOf(iterator)));
  while (true) {
    const first = heads.filter((head) => head !== undefined).reduce(soonest, undefined);
    if (!first) return;
    yield first.value;
    heads[heads.indexOf(first)] = await headOf(first.iterator);
  }

  function soonest(best: Head<T> | undefined, head: Head<T>): Head<T> {
    return best && compare(best.value, head.value) <= 0 ? best : head;
  }
}

interface Head<T> {
  readonly value: T;
  readonly iterator: AsyncIterator<T>;
}

async function headOf<T>(iterator: AsyncIterator<T>): Promise<Head<T> | undefined> {
  const { done, value } = await iterator.next();
  return done ? undefined : { value, iterator };
}
