import * as z from 'zod';

/** The last time that a JavaScript date can hold. */
const LAST_MS = 8.64e15;

/** A received or stored time: from 1970 on, and valid as a date. */
export const epochMs = z.int().nonnegative().max(LAST_MS, 'is beyond the last moment that a date can hold');

/** Milliseconds since the Unix epoch. */
export type EpochMs = number;
