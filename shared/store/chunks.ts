/** A list in pieces of at most `size`, in order; no pieces for an empty list. */
export function chunksOf<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}
