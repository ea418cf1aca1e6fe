/** A fact, or the reason why it is not known, as one sentence. */
export type Fact<T> = { readonly value: T } | { readonly unknown: string };

export const known = <T>(value: T): Fact<T> => ({ value });

export const knownOr = <T, Otherwise>(fact: Fact<T>, otherwise: Otherwise): T | Otherwise =>
  'value' in fact ? fact.value : otherwise;

/** Returns the facts that are not known, each by its name, and why. */
export const unknownAmong = (facts: Readonly<Record<string, Fact<unknown>>>) =>
  Object.entries(facts).flatMap(([what, fact]) =>
    'unknown' in fact ? [{ what, reason: fact.unknown }] : [],
  );
