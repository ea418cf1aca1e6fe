import type { Constants } from './constants.ts';
import { first, type ModelInput, type Resource, resourcesOf } from './model.ts';
import type { Fleet, Scenario } from './scenarios.ts';
import { settingsFor } from './settings.ts';

/** More clusters than anybody has. */
const MOST = 1_000_000;

/** How many clusters of that size can be taken, with what is deployed for so many, and what is used up beyond. */
export interface Ceiling {
  readonly clusters: number;
  readonly beyond: Resource;
}

/** What is deployed is what {@link settingsFor} says of each number of clusters. */
export function ceilingOf(size: Omit<Fleet, 'clusters'>, scenario: Scenario, constants: Constants): Ceiling {
  const worst = (clusters: number): Resource => {
    const fleet = { ...size, clusters };
    const input: ModelInput = { fleet, settings: settingsFor(fleet, constants), scenario, constants };
    return first(resourcesOf(input));
  };
  const holds = (clusters: number): boolean => {
    const { use, limit } = worst(clusters);
    return use <= limit;
  };
  let [low, high] = [0, 1];
  while (high < MOST && holds(high)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) low = middle;
    else high = middle;
  }
  return { clusters: low, beyond: worst(high) };
}
