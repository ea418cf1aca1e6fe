import type { Scenario } from '#test/bench/scenario.ts';
import { NoQuotaError } from './measured-process.ts';
import { SCENARIOS } from './scenarios.ts';

const CAP_SECONDS = 60;
/** What is quick and takes no root. */
const SHORT = ['taint'] as const;

/** All of `npm run bench:relay` but the soak, once each: it has its peers, and aims, in itself. */
export const relay: Scenario = {
  about:
    'the watch relay on synthetic API servers: memory, start, delays, storms, take-over, and informers beside it',
  async run(tell, { short }) {
    const options = { capMs: CAP_SECONDS * 1000, soakMs: 0 };
    const names = short ? SHORT : Object.keys(SCENARIOS).filter((name) => !SCENARIOS[name]?.onlyByName);
    for (const name of names) {
      try {
        await SCENARIOS[name]?.run(({ what, value, unit, aim, note }) => {
          tell({
            ...{ what, unit, better: 'less', ours: value === undefined ? [] : [value] },
            ...(aim === undefined ? {} : { aim: { of: 'value', atMost: aim } }),
            ...(note === undefined ? {} : { note }),
          });
        }, options);
      } catch (error) {
        if (!(error instanceof NoQuotaError)) throw error;
        process.stderr.write(`  LEFT OUT: ${name}: ${error.message}\n`);
      }
    }
  },
};
