import type { Figure } from '#test/bench/result.ts';
import type { BenchOptions, Scenario } from '#test/bench/scenario.ts';
import { NoQuotaError } from './measured-process.ts';
import { SCENARIOS } from './scenarios.ts';

const CAP_SECONDS = 60;
/** The scenarios that are quick and do not require root. */
const SHORT = ['taint'] as const;

const everything = Object.keys(SCENARIOS).filter((name) => !SCENARIOS[name]?.onlyByName);

/** All scenarios except the soak, once each; their figures have their own aims. */
export const relay: Scenario = {
  about: 'the watch relay on synthetic API servers: memory, start, delays, storms and take-over',
  async run(report, options) {
    for (const name of options.short ? SHORT : everything) await measure(name, report, options);
  },
};

/** Each scenario by itself, by its name on the command line. */
export const relayParts: Readonly<Record<string, Scenario>> = Object.fromEntries(
  Object.entries(SCENARIOS).map(([name, { about }]) => [
    `relay-${name}`,
    { about, run: (report, options) => measure(name, report, options) } satisfies Scenario,
  ]),
);

async function measure(
  name: string,
  report: (figure: Figure) => void,
  { soakMinutes }: BenchOptions,
): Promise<void> {
  try {
    const options = { capMs: CAP_SECONDS * 1000, soakMs: soakMinutes * 60_000 };
    await SCENARIOS[name]?.run(({ what, value, unit, aim, note }) => {
      report({
        what,
        unit,
        ours: value === undefined ? [] : [value],
        ...(aim === undefined ? {} : { aim: { of: 'value', atMost: aim } }),
        ...(note === undefined ? {} : { note }),
      });
    }, options);
  } catch (error) {
    if (!(error instanceof NoQuotaError)) throw error;
    process.stderr.write(`  LEFT OUT: ${name}: ${error.message}\n`);
  }
}
