/** Numbers by name, and numbers by name under a name. */
export interface Tree {
  readonly [name: string]: number | Tree;
}

/** Applies `of` to each number of the first of two trees, and to that of the same name of the second: 0 where that has none. */
export function each<Of extends object>(a: Of, b: Of, of: (a: number, b: number) => number): Of {
  return combined(a as Tree, b as Tree, of) as Of;
}

function combined(a: Tree, b: Tree, of: (a: number, b: number) => number): Tree {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return Object.fromEntries(
    names.map((name) => {
      const [first, second] = [a[name], b[name]];
      if (typeof first === 'object' || typeof second === 'object') {
        return [name, combined((first ?? {}) as Tree, (second ?? {}) as Tree, of)];
      }
      return [name, of(first ?? 0, second ?? 0)];
    }),
  );
}
