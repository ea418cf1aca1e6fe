import { z } from 'zod';
import { tolerationProblems } from '#shared/taints/tolerations.ts';
import { type Problem, taintProblems } from '#shared/taints/validation.ts';
import { tolerationsUpdateProblems } from '#simulator/objects/toleration-updates.ts';
import { matchOptions, taint, toleration } from '../case-fields.ts';
import { compare, readCases, type Suite } from '../suite.ts';

const tolerations = z.array(toleration);

const common = {
  id: z.string(),
  options: matchOptions,
  expect: z.object({ valid: z.boolean(), errors: z.array(z.string()) }),
};

const validateCase = z.discriminatedUnion('kind', [
  z.object({ ...common, kind: z.literal('tolerations'), input: z.object({ tolerations }) }),
  z.object({
    ...common,
    kind: z.literal('tolerationsUpdate'),
    input: z.object({ tolerations, oldTolerations: tolerations }),
  }),
  z.object({ ...common, kind: z.literal('taints'), input: z.object({ taints: z.array(taint) }) }),
]);

type ValidateCase = z.output<typeof validateCase>;

export const validateSuite: Suite = {
  schema: 'validate/1',
  cases: (file) =>
    readCases('cases', file.cases, validateCase, (given) => {
      const problems = problemsOf(given);
      const errors = problems.map(({ field, type }) => `${field} ${type}`);
      const { valid, errors: expected } = given.expect;
      return compare(
        { valid, errors: asSet(expected) },
        { valid: problems.length === 0, errors: asSet(errors) },
      );
    }),
};

function problemsOf(given: ValidateCase): readonly Problem[] {
  switch (given.kind) {
    case 'tolerations':
      return tolerationProblems(given.input.tolerations, given.options);
    case 'tolerationsUpdate':
      return tolerationsUpdateProblems(given.input.tolerations, given.input.oldTolerations, given.options);
    case 'taints':
      return taintProblems(given.input.taints);
    default:
      return given satisfies never;
  }
}

/** Neither order nor repetition matters. */
function asSet(errors: readonly string[]): readonly string[] {
  return [...new Set(errors)].sort();
}
