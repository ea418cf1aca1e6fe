/**
 * Reports whether an entry of a selection's `namespaces` is a pattern. Each `*` in a pattern matches any characters,
 * or none.
 */
export const isPattern = (entry: string): boolean => entry.includes('*');

/** Reports whether a namespace matches a pattern, in time proportional to the lengths of both. */
export function matchesPattern(pattern: string, namespace: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === namespace;
  if (!namespace.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = namespace.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return namespace.length - last.length >= at && namespace.endsWith(last);
}
