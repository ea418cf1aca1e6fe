import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { forecastPod } from '#shared/explain/forecast.ts';
import type { ClimateName } from '#test/simulation/climates.ts';
import type { ForecastPod } from '#test/simulation/forecast-judge.ts';
import { type Simulated, simulate } from '#test/simulation/simulate.ts';

/** `SIMULATION_FROM=<number>` plays other histories than usual. */
const { SIMULATION_FROM = '300' } = process.env;
const FROM = Number(SIMULATION_FROM);
const CLIMATES: readonly [ClimateName, ...ClimateName[]] = ['fair', 'alone', 'shifting', 'slow', 'fickle'];
/** Histories in which budgets block pods; others are played up to the number of all. */
const BLOCKED = [7, 23, 75, 143, 148, 177, 183, 209, 240];
const HISTORIES = 25;
/** The most histories that are played until a wrong forecast is found. */
const UNTIL_CAUGHT = 40;

const played = (seed: number, forecastPod: ForecastPod): Promise<Simulated> =>
  simulate(seed, { forecastPod, governed: true, climate: CLIMATES[seed % CLIMATES.length] ?? CLIMATES[0] });

test('forecasts the actual outcome of pods while nothing changes', async (context) => {
  const correct: Record<string, number> = {};
  const others = Array.from({ length: HISTORIES - BLOCKED.length }, (_, index) => FROM + index);
  for (const seed of [...BLOCKED, ...others]) {
    const { forecasts, climate } = await played(seed, forecastPod);
    assert.deepEqual(forecasts.broken, [], `${climate} history ${seed}`);
    for (const [what, count] of Object.entries(forecasts.correct))
      correct[what] = (correct[what] ?? 0) + count;
  }
  context.diagnostic(JSON.stringify(correct));
  for (const what of ['evict', 'goes, held before', 'held', 'blocked', 'keep'])
    assert.ok((correct[what] ?? 0) > 10, `few correct forecasts: a pod ${what}`);
});

const LIES: Readonly<Record<string, ForecastPod>> = {
  'holds are overlooked': (question) => forecastPod({ ...question, rules: { ...question.rules, holds: [] } }),
  'stops are overlooked': (question) => forecastPod({ ...question, rules: { ...question.rules, stops: [] } }),
  'budgets are overlooked': (question) => forecastPod({ ...question, budgets: [] }),
  'what is stored is forgotten, and with it since when taints are there': (question) =>
    forecastPod({ ...question, partition: { ...question.partition, node: undefined, scheduled: new Map() } }),
};

describe('the simulation detects when', () => {
  for (const [name, lie] of Object.entries(LIES)) {
    test(name, async (context) => {
      for (let seed = 0; seed < UNTIL_CAUGHT; seed++) {
        const { forecasts } = await played(seed, lie);
        const [first] = forecasts.broken;
        if (first === undefined) continue;
        context.diagnostic(`caught after ${seed + 1} histories: ${first}`);
        return;
      }
      assert.fail(`not caught in ${UNTIL_CAUGHT} histories`);
    });
  }
});
