import { evictions, monthly, sum } from './bill.ts';
import {
  describeClusterCalls,
  first,
  lookUnits,
  type ModelInput,
  type Resource,
  resourcesOf,
} from './model.ts';
import { dollars, span, written } from './written.ts';

/** Below this part of a limit nobody need know of it. */
const WORTH_TELLING = 0.01;

/** What there is too little of takes longer; too many of something else do not work. */
const RATES = ['units a second', 'processes', 'cores'];

export const HEAD = ['resource', 'use', 'limit', 'used', 'when that is exceeded'] as const;

/** Each resource as a row, what is used most first; `all`: those of which hardly anything is used, too. */
export function resourceRows(input: ModelInput, all = false): readonly (readonly string[])[] {
  return [...resourcesOf(input)]
    .sort((a, b) => b.use / b.limit - a.use / a.limit)
    .filter(({ use, limit }) => all || use / limit >= WORTH_TELLING)
    .map((resource) => [
      resource.what,
      `${written(resource.use)} ${resource.unit}`,
      resource.source === undefined
        ? written(resource.limit)
        : `[${written(resource.limit)}](${resource.source})`,
      usedOf(resource),
      resource.remedy,
    ]);
}

const usedOf = ({ use, limit }: Resource): string =>
  use > limit ? `**${written(use / limit)} ×**` : `${Math.round((use / limit) * 100)} %`;

/** What breaks first, in a sentence. */
export function verdict(input: ModelInput): string {
  const { scenario, fleet } = input;
  const most = first(resourcesOf(input));
  const share = most.use / most.limit;
  if (share <= 1)
    return `Nothing breaks. First would: ${most.what}, of which ${Math.round(share * 100)} % is used.`;
  const lasts = scenario.lasts?.(fleet);
  const late =
    lasts === undefined || !RATES.includes(most.unit)
      ? ''
      : ` It is all done after ${span(lasts * share)} instead of ${span(lasts)}.`;
  return `What breaks first: ${most.what}, ${written(share)} times what there is.${late}`;
}

/** What is deployed, in a sentence. */
export function deployed({ settings }: ModelInput): string {
  const { relayCount, relayCpu, relayMemoryMiB, deltaConcurrency, evictConcurrency, warmWrites } = settings;
  return [
    `\`relayCount\` ${relayCount}, \`relayCpu\` ${relayCpu}, \`relayMemoryMiB\` ${relayMemoryMiB},`,
    `\`deltaConcurrency\` ${deltaConcurrency}, \`evictConcurrency\` ${evictConcurrency}, \`warmWrites\` ${warmWrites}`,
    `and a concurrency of ${written(settings.lambdaConcurrency)} for Lambda`,
  ].join(' ');
}

/** What it costs, line by line. */
export function costRows(input: ModelInput): readonly (readonly string[])[] {
  const [always, more] = [monthly(input), evictions(input)];
  const lasts = input.scenario.lasts?.(input.fleet);
  return [
    ...always.map(({ what, dollars: each }) => [what, dollars(each)]),
    ['**together, a month in which nothing is tainted**', `**${dollars(sum(always))}**`],
    ...(sum(more) === 0
      ? []
      : [
          ...more.map(({ what, dollars: each }) => [`evictions: ${what}`, dollars(each)]),
          [
            `**evictions, ${lasts === undefined ? 'a month' : `in ${span(lasts)}`}**`,
            `**${dollars(sum(more))}**`,
          ],
        ]),
  ];
}

/** What has no limit of its own, and takes of others' all the same. */
export const besides = (input: ModelInput): string =>
  [
    `Besides, ${written(describeClusterCalls(input))} calls of \`eks:DescribeCluster\` a second, of which AWS names no quota; and`,
    `${written(lookUnits(input))} reads of the table for each look of a console, or of \`taintward status\`, at the whole fleet.`,
  ].join(' ');
