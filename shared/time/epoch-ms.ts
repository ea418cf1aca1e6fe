import * as z from 'zod';

/** The last moment that a JavaScript date can hold. */
const LAST_MS = 8.64e15;

/** A moment that was told or stored: one from 1970 on, that can be written as a date. */
export const epochMs = z.int().nonnegative().max(LAST_MS, 'is beyond the last moment that a date can hold');

/** Milliseconds since the Unix epoch. */
export type EpochMs = number;
