/**
 * Returns a function that makes a value at the first call and returns the same to later calls; after a failure, the
 * next call makes it again.
 */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
