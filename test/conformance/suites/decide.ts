import { z } from 'zod';
import { deadline } from '#shared/taints/deadline.ts';
import { int64, matchOptions, taint, toleration } from '../case-fields.ts';
import { compare, readCases, type Suite } from '../suite.ts';

const decideCase = z.object({
  id: z.string(),
  tolerations: z.array(toleration),
  taints: z.array(taint),
  options: matchOptions,
  /** Seconds since every taint was first seen and the pod was there. */
  taintAge: z.int().nonnegative().default(0),
  expect: z.discriminatedUnion('action', [
    z.object({ action: z.literal('none') }),
    z.object({ action: z.literal('evict-now') }),
    z.object({ action: z.literal('evict-after'), seconds: int64 }),
  ]),
});

type DecideCase = z.output<typeof decideCase>;

/** Any time works: the rule does not depend on the calendar. */
const NOW = Date.UTC(2026, 0, 1);

export const decideSuite: Suite = {
  schema: 'decide/1',
  cases: (file) =>
    readCases('cases', file.cases, decideCase, (given) => compare(given.expect, nextStep(given))),
};

function nextStep({ tolerations, taints, options, taintAge }: DecideCase): DecideCase['expect'] {
  const since = NOW - taintAge * 1000;
  const timed = taints.map((each) => ({ ...each, since }));
  const found = deadline(tolerations, timed, since, options);
  if (!found) return { action: 'none' };
  const remainingMs = found.atMs - BigInt(NOW);
  return remainingMs <= 0n
    ? { action: 'evict-now' }
    : { action: 'evict-after', seconds: remainingMs / 1000n };
}
