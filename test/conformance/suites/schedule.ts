import { z } from 'zod';
import { taintText } from '#shared/taints/taint.ts';
import { normaliseScores, schedulerVerdict } from '#simulator/controllers/scheduler.ts';
import { matchOptions, taint, toleration } from '../case-fields.ts';
import { compare, readCases, type Suite } from '../suite.ts';

const passOrFail = z.enum(['pass', 'fail']);

const scheduleCase = z.object({
  id: z.string(),
  taints: z.array(taint),
  tolerations: z.array(toleration),
  options: matchOptions,
  expect: z.object({
    noSchedule: passOrFail,
    noExecute: passOrFail,
    filter: passOrFail,
    firstUntolerated: z.string(),
    preferCount: z.int().nonnegative(),
  }),
});

const normalizeCase = z.object({
  id: z.string(),
  preferCounts: z.array(z.int().nonnegative()),
  expect: z.array(z.int()),
});

type ScheduleCase = z.output<typeof scheduleCase>;

export const scheduleSuite: Suite = {
  schema: 'schedule/1',
  cases: (file) => [
    ...readCases('normalize', file.normalize ?? [], normalizeCase, (given) =>
      compare(given.expect, normaliseScores(given.preferCounts)),
    ),
    ...readCases('cases', file.cases, scheduleCase, (given) => compare(given.expect, verdict(given))),
  ],
};

function verdict({ taints, tolerations, options }: ScheduleCase): ScheduleCase['expect'] {
  const found = schedulerVerdict(taints, tolerations, options);
  return {
    noSchedule: found.noSchedule ? 'pass' : 'fail',
    noExecute: found.noExecute ? 'pass' : 'fail',
    filter: found.firstUntolerated ? 'fail' : 'pass',
    firstUntolerated: found.firstUntolerated ? taintText(found.firstUntolerated) : '',
    preferCount: found.preferCount,
  };
}
