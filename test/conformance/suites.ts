import type { Suite } from './suite.ts';
import { admissionSuite } from './suites/admission.ts';
import { decideSuite } from './suites/decide.ts';
import { scheduleSuite } from './suites/schedule.ts';
import { timelinesSuite } from './suites/timelines.ts';
import { toleratesSuite } from './suites/tolerates.ts';
import { validateSuite } from './suites/validate.ts';

/** One suite per published schema. */
export const suites: readonly Suite[] = [
  toleratesSuite,
  decideSuite,
  timelinesSuite,
  admissionSuite,
  scheduleSuite,
  validateSuite,
];
