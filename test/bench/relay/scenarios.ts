import type { Scenario } from './figure.ts';
import { fleet } from './scenarios/fleet.ts';
import { isolation } from './scenarios/isolation.ts';
import { oneTaint } from './scenarios/one-taint.ts';
import { residentAtAMillionPods, residentAtManyPods } from './scenarios/resident.ts';
import { soak } from './scenarios/soak.ts';
import { present } from './scenarios/standing.ts';
import { startOnAQuarter, startOnOneCore } from './scenarios/start.ts';
import { storm } from './scenarios/storm.ts';
import { takeover } from './scenarios/takeover.ts';

/** Scenarios by their names on the command line. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  idle: residentAtManyPods,
  million: residentAtAMillionPods,
  start: startOnOneCore,
  'start-quarter': startOnAQuarter,
  fleet,
  taint: oneTaint,
  storm,
  present: present,
  takeover,
  isolation,
  soak,
};
