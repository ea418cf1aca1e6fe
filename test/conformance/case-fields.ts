import { z } from 'zod';
import { INT64_MAX, INT64_MIN } from '#shared/taints/int64.ts';

/** Fields that the published schemas share. An absent text and "" mean the same. */

const text = z.string().default('');

/** Any JSON integer of 64 bits, exactly. */
export const int64 = z
  .union([z.int(), z.bigint()])
  .transform(BigInt)
  .refine((number) => number >= INT64_MIN && number <= INT64_MAX, 'must be an int64');

export const taint = z.object({ key: text, value: z.string().exactOptional(), effect: text });

export const toleration = z.object({
  key: z.string().exactOptional(),
  operator: z.string().exactOptional(),
  value: z.string().exactOptional(),
  effect: z.string().exactOptional(),
  tolerationSeconds: int64.exactOptional(),
});

export const matchOptions = z.object({ comparisonOperators: z.boolean().default(false) }).prefault({});
