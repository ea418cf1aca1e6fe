import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { answersOf, type DemoCluster, type Questions } from './answers.ts';
import { ApiServer } from './api-server.ts';
import { BuiltInWatch } from './built-in-watch.ts';
import { FleetView } from './fleet-view.ts';
import { Live } from './live.ts';
import { questionsTo } from './questions.ts';

/** What was read of a fleet is relied on for so long (ms): a table's reads are paid for, those of a file are not. */
const MAX_AGE_MS = { local: 1_000, deployed: 5_000, 'in-cluster': 2_000 };

export interface FleetApiOptions {
  readonly fleet: Fleet;
  /** Absent: they are put to the fleet. */
  readonly questions?: Questions;
  readonly matching: MatchOptions;
  readonly demo?: DemoCluster | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** The console's API of a fleet. */
export function fleetApi({ fleet, questions, matching, demo, clock, log }: FleetApiOptions): ApiServer {
  const builtIns = new BuiltInWatch({ fleet, clock });
  const view = new FleetView({
    fleet,
    builtIn: (cluster) => builtIns.of(cluster),
    clock,
    maxAgeMs: MAX_AGE_MS[fleet.kind],
  });
  const asked = questions ?? questionsTo(fleet, { matching, clock });
  const answers = answersOf({ fleet, view, questions: asked, demo, clock });
  return new ApiServer({ answers, live: new Live({ view }), log });
}
