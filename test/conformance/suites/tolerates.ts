import { z } from 'zod';
import { tolerates } from '#shared/taints/match.ts';
import { matchOptions, taint, toleration } from '../case-fields.ts';
import { compare, readCases, type Suite } from '../suite.ts';

const toleratesCase = z.object({
  id: z.string(),
  taint,
  toleration,
  options: matchOptions,
  expect: z.boolean(),
});

export const toleratesSuite: Suite = {
  schema: 'tolerates/1',
  cases: (file) =>
    readCases('cases', file.cases, toleratesCase, (given) =>
      compare(given.expect, tolerates(given.taint, given.toleration, given.options)),
    ),
};
