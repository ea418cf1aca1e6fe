import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Toleration } from '#shared/taints/taint.ts';
import { UPSTREAM_DEFAULT_TOLERATION_SECONDS } from '#shared/taints/tolerations.ts';
import { admitTolerations } from '#simulator/objects/admission.ts';
import { int64, toleration } from '../case-fields.ts';
import { type Mismatch, readCases, type Suite } from '../suite.ts';

const admissionCase = z.object({
  id: z.string(),
  operation: z.string(),
  resource: z.string().default('pods'),
  subresource: z.string().default(''),
  options: z
    .object({
      notReadySeconds: int64.default(UPSTREAM_DEFAULT_TOLERATION_SECONDS.notReady),
      unreachableSeconds: int64.default(UPSTREAM_DEFAULT_TOLERATION_SECONDS.unreachable),
    })
    .prefault({}),
  input: z.array(toleration),
  expect: z.array(toleration),
});

export const admissionSuite: Suite = {
  schema: 'admission/1',
  cases: (file) => readCases('cases', file.cases, admissionCase, runAdmission),
};

function runAdmission(given: z.output<typeof admissionCase>): Mismatch | undefined {
  const { notReadySeconds: notReady, unreachableSeconds: unreachable } = given.options;
  const got = admitTolerations(given, given.input, { notReady, unreachable });
  const same = isDeepStrictEqual(got.map(withoutEmpty), given.expect.map(withoutEmpty));
  return same ? undefined : { expected: given.expect, got };
}

/** "" means the same as absent. */
function withoutEmpty(given: Toleration): Toleration {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
}
