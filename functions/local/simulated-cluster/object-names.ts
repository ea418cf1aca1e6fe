import { randomInt } from 'node:crypto';
import type { StatusCause } from './status.ts';

/** RFC 1123; upstream: `IsDNS1123Subdomain`. */
const NAME_MAX_LENGTH = 253;
const NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** Upstream's alphabet: no vowels, so no words, and nothing that looks like something else. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;

/** A name made of `metadata.generateName`. */
export const generatedName = (prefix: string): string =>
  prefix +
  Array.from({ length: SUFFIX_LENGTH }, () => SUFFIX_ALPHABET[randomInt(SUFFIX_ALPHABET.length)]).join('');

/** What is wrong with an object's name; empty when it is valid. */
export function nameCauses(name: string): readonly StatusCause[] {
  const field = 'metadata.name';
  if (name === '') {
    const message = 'Required value: name or generateName is required';
    return [{ reason: 'FieldValueRequired', message, field }];
  }
  if (name.length <= NAME_MAX_LENGTH && NAME.test(name)) return [];
  const message =
    `Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, ` +
    `'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com'), and have at most ` +
    `${NAME_MAX_LENGTH} characters`;
  return [{ reason: 'FieldValueInvalid', message, field }];
}
