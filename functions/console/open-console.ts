import type { Fleet } from '#functions/operator/fleet.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { answersOf, type DemoCluster, type Questions } from './answers.ts';
import { ApiServer } from './api-server.ts';
import { BuiltInWatch } from './built-in-watch.ts';
import { FleetView } from './fleet-view.ts';
import { Live } from './live.ts';
import { type PageFiles, readPageFiles } from './page-files.ts';
import { questionsTo } from './questions.ts';
import { type Console, startConsole } from './server.ts';

/** What was read of a fleet is relied on for so long (ms): a table's reads are paid for, those of a file are not. */
const MAX_AGE_MS = { local: 1_000, deployed: 5_000 };

export interface ConsoleOfFleet {
  readonly fleet: Fleet;
  /** Absent: they are put to the fleet. */
  readonly questions?: Questions;
  readonly matching: MatchOptions;
  readonly demo?: DemoCluster | undefined;
  readonly host?: string | undefined;
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent: the one that is part of this release. */
  readonly page?: PageFiles;
}

/** Serves the console of a fleet, until it is closed. Rejects with `ConsoleAddressError`. */
export async function openConsole(options: ConsoleOfFleet): Promise<Console> {
  const { fleet, matching, demo, host, port, clock, log, page = readPageFiles() } = options;
  const { questions = questionsTo(fleet, { matching, clock }) } = options;
  const builtIns = new BuiltInWatch({ fleet, clock });
  const view = new FleetView({
    fleet,
    builtIn: (cluster) => builtIns.of(cluster),
    matching,
    clock,
    maxAgeMs: MAX_AGE_MS[fleet.kind],
  });
  const answers = answersOf({ fleet, view, questions, demo, clock });
  const api = new ApiServer({ answers, live: new Live({ view }), log });
  return startConsole({ ...(host === undefined ? {} : { host }), port, api, page, clock });
}
