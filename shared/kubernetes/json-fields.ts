/** Readers of parsed JSON whose shape nobody has checked: what is missing or of another type reads as empty. */

type Fields = Readonly<Record<string, unknown>>;

const NONE: Fields = {};

/** `value` when it is an object (an array reads as one without named fields), or else one without fields. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : NONE;

export const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
