import { agentMonthly, sum } from '#test/scale/bill.ts';
import { ceilingOf } from '#test/scale/ceiling.ts';
import { type Constants, readConstants } from '#test/scale/constants.ts';
import type { ModelInput } from '#test/scale/model.ts';
import { LOOKED_UP_ON } from '#test/scale/quotas.ts';
import { besides, costRows, deployed, HEAD, resourceRows, verdict } from '#test/scale/report.ts';
import { type Fleet, SCENARIOS, type ScenarioName } from '#test/scale/scenarios.ts';
import { settingsFor } from '#test/scale/settings.ts';
import { dollars, written } from '#test/scale/written.ts';
import { table } from './table.ts';

const FLEET: Fleet = { clusters: 1_000, nodes: 5_000, pods: 30 };
const SIZES = [{ nodes: 100 }, { nodes: 1_000 }, { nodes: 5_000 }];

/** The page on how far the service goes, from what scripts measured. */
export function scalePage(): string {
  const constants = readConstants();
  const { clusters, nodes, pods } = FLEET;
  return [
    '# How far it goes',
    '',
    `What a fleet of ${written(clusters)} clusters × ${written(nodes)} nodes × ${pods} pods uses of each resource, what breaks first and what to do: reckoned by`,
    'a model, `test/scale`, and written by `npm run docs`. Nobody has run such a fleet. For one of your own:',
    '',
    '```sh',
    'npm run scale -- --clusters 200 --nodes 500 --pods 30 --scenario zone',
    '```',
    '',
    '**What it is made of.** How often the service calls AWS and API servers, and what that takes, is counted: the relay and the functions that are',
    'deployed run over a fleet in memory, in driven time (`npm run scale:measure -- counts`). What a relay takes of a machine is measured',
    `(\`relay\` and \`storm\`: on ${constants.relay.machine}, ${constants.relay.on}); the time of functions is what \`npm run test:deployed\` measured, the`,
    `longer one of what [the guide](operations.md#costs) says. Limits are AWS’s defaults in a large region, as its pages said on ${LOOKED_UP_ON}. A test counts`,
    'a fleet of another shape anew and fails when the model is off by more than a tenth; others compare it with the guide’s costs.',
    '',
    ...ceilings(constants),
    ...judgements(constants),
    ...(Object.keys(SCENARIOS) as ScenarioName[]).flatMap((name) => section(name, constants)),
  ].join('\n');
}

function ceilings(constants: Constants): readonly string[] {
  const rows = Object.entries(SCENARIOS).flatMap(([name, scenario]) =>
    SIZES.map(({ nodes }) => {
      const { clusters, beyond } = ceilingOf({ nodes, pods: FLEET.pods }, scenario, constants);
      return [name, written(nodes), clusters.toLocaleString('en-US'), beyond.what];
    }),
  );
  return [
    '## The most clusters',
    '',
    'Deployed as [the guide](operations.md#quotas) says for each number of nodes, with as few relays, as large ones, as take them:',
    '',
    table(['scenario', 'nodes of a cluster', 'clusters', 'beyond, what breaks first'], rows),
    '',
  ];
}

/** What the tables do not say by themselves. */
function judgements({ relay, storm }: Constants): readonly string[] {
  const [polls, alarms] = agentMonthly().map((cost) => dollars(FLEET.clusters * cost.dollars));
  const smallest = Math.floor((256 - relay.heapMb.base) / storm.heapMbPerPod / 10_000) * 10_000;
  return [
    '## What follows',
    '',
    '- **More stacks, not a larger one.** Stacks share nothing but the account’s quotas, and a cluster belongs to one: where a table, a relay or',
    '  a function is used up, deploy another stack (`taintward:name`) with half of the clusters. What is below is for one.',
    '- **Every relay looks at every lease**, so reads grow with clusters × relays, and cost most of what an idle fleet costs. Few large relays are',
    '  cheaper than many small ones, until one is busy with a core.',
    '- **What stays tainted is told anew every ten minutes.** After a zone is lost that is more than the evictions are. Remove nodes that are dead, as',
    '  a cloud’s node controller does by itself; they are not told of then.',
    '- **A guard is on by default** and trips at 20 % of a cluster: of a lost zone, or of somebody’s mistake, a default policy evicts a fifth, and holds',
    '  the rest. These tables let all go.',
    `- **A relay keeps pods that count down in memory**, ${written(storm.heapMbPerPod * 1024)} KB for each, whatever its guard holds. One of 512 MiB has a heap of 256 MB, and`,
    `  room for some ${written(smallest)}; beyond, it would end and begin again. Give relays more memory where more may be tainted within the five minutes`,
    '  for which pods tolerate it: half of it is theirs, 2 GB at the most.',
    '- **A mass event comes late, and nothing of it is lost.** Queues keep four days, timers wait in queues that have no limit, and what is throttled is',
    '  tried again. What is beyond a rate that the table, the functions or the relays have takes longer by as much.',
    '- **EKS is asked for each cluster’s address by every process of `evict`**, anew after ten minutes. AWS names no quota of `eks:DescribeCluster`, but it',
    '  throttles; calls are tried again, and evictions come late by seconds. With hundreds of clusters, register them by kubeconfigs in Secrets Manager,',
    '  which answers 10,000 calls a second.',
    `- **An [agent](agent.md) costs ${dollars(sum(agentMonthly()))} a month** while nothing is due: ${written(FLEET.clusters)} of them ${polls} for polls of their queues and ${alarms} for alarms, and no relays`,
    '  on Fargate. Each has two queues, two roles and a schedule group: before hundreds are deployed, have the quotas raised of',
    '  [roles](https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html),',
    '  [schedule groups](https://docs.aws.amazon.com/scheduler/latest/UserGuide/scheduler-quotas.html) and',
    '  [stacks](https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html).',
    '- **The console and `taintward status` of the whole fleet read all that is tainted.** While a zone is lost in a thousand clusters, ask for single ones.',
    '',
  ];
}

function section(name: ScenarioName, constants: Constants): readonly string[] {
  const scenario = SCENARIOS[name];
  const input: ModelInput = { fleet: FLEET, settings: settingsFor(FLEET, constants), scenario, constants };
  const title = name.charAt(0).toUpperCase() + name.slice(1);
  return [
    `## ${title}`,
    '',
    `${scenario.about.charAt(0).toUpperCase()}${scenario.about.slice(1)}. With ${deployed(input)}:`,
    '',
    `**${verdict(input)}**`,
    '',
    table(HEAD, resourceRows(input)),
    '',
    ...(scenario.tainted(FLEET) > 0 ? [besides(input), ''] : []),
    table(['cost', 'us-east-1'], costRows(input)),
    '',
  ];
}
