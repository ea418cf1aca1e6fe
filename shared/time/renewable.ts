/** Returns a function that can be replaced by a new one, without the state of the old one. */
export function renewable<Args extends readonly unknown[], Result>(
  make: () => (...args: Args) => Result,
): { readonly call: (...args: Args) => Result; readonly renew: () => void } {
  let current = make();
  return {
    call: (...args) => current(...args),
    renew: () => {
      current = make();
    },
  };
}
