/** A fact, or the reason why it is not known, as one sentence. */
export type Fact<T> = { readonly value: T } | { readonly unknown: string };

export const known = <T>(value: T): Fact<T> => ({ value });

export const knownOr = <T, Otherwise>(fact: Fact<T>, otherwise: Otherwise): T | Otherwise =>
  'value' in fact ? fact.value : otherwise;
