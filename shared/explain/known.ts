/** A fact, or the reason why it is not known, as one sentence. */
export type Known<T> = { readonly value: T } | { readonly unknown: string };

export const known = <T>(value: T): Known<T> => ({ value });

export const knownOr = <T, Otherwise>(fact: Known<T>, otherwise: Otherwise): T | Otherwise =>
  'value' in fact ? fact.value : otherwise;
