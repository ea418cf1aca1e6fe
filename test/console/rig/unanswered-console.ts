import { fleetApi } from '#shared/console/fleet-api.ts';
import { type Console, startConsole } from '#shared/console/server.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

/** Opens the console of a fleet without a cluster behind it: every request to a cluster fails with `sentence`. */
export function unansweredConsole(fleet: Fleet, sentence: string): Promise<Console> {
  const [clock, log] = [systemClock, recordingLog()];
  const unanswered = async () => {
    throw new FleetError(sentence);
  };
  return startConsole({
    clock,
    log,
    port: 0,
    portSetBy: '--port',
    api: async () =>
      fleetApi({
        fleet,
        clock,
        log,
        questions: {
          explainPod: unanswered,
          explainNode: unanswered,
          tolerations: unanswered,
          previewTolerations: unanswered,
          changeTolerations: unanswered,
          whatIf: unanswered,
        },
        matching: { comparisonOperators: false },
      }),
  });
}
