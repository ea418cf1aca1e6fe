import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { aimText, amount, ratioText } from '#test/bench/figure-text.ts';
import { type Figure, median, meetsAim, type Result, ratioOf, resultSchema } from '#test/bench/result.ts';
import { type Bars, barChart } from './chart.ts';
import { table } from './table.ts';

const RESULTS = join(import.meta.dirname, '../../test/bench/results');

type Results = ReadonlyMap<string, Result>;

interface Section {
  readonly title: string;
  readonly text: string;
  /** Names of scenarios, in the order of the section. */
  readonly scenarios: readonly string[];
  /** By the name of its file. */
  readonly pictures?: Readonly<Record<string, (results: Results) => Bars>>;
}

/** The figure of a scenario by its name; `undefined`: it was not measured. */
const figureOf = (results: Results, scenario: string, what: string): Figure | undefined =>
  results.get(scenario)?.figures.find((figure) => figure.what === what);

const MASS = ['mass-1x110', 'mass-100x50', 'mass-1000x30'] as const;
const shapeOf = (scenario: string): string => scenario.slice('mass-'.length).replace('x', ' × ');

/** Ours and the peer's medians of some figures. */
function ownAndPeer(
  title: string,
  unit: string,
  figures: readonly (readonly [string, Figure | undefined])[],
  logarithmic = false,
): Bars {
  const peer = figures.find(([, figure]) => figure?.peer)?.[1]?.peer?.name ?? 'peer';
  return {
    ...{ title, unit, logarithmic },
    things: figures.map(([thing]) => thing),
    series: [
      { name: 'Taintward', values: figures.map(([, figure]) => figure && median(figure.ours)) },
      { name: peer, values: figures.map(([, figure]) => median(figure?.peer?.values ?? [])) },
    ],
  };
}

const SECTIONS: readonly Section[] = [
  {
    title: 'Mass evictions',
    text: `So many nodes of so many pods, all tainted at the same moment, on a real API server. Between an eviction and the next both sides ask the
API server for the same: to set the pod's condition and to delete it; ours looks at the node as well. Of each pod an Event
of ours follows, behind the evictions; the built-in controller leaves most of its own out when there are many. Its default is what \`kube-controller-manager\`
does without flags, 20 requests a second, and it is given 40 s: enough for 110 pods,
while of 5,000 pods that are due at once none went within that time, so that no ratio is told there; a managed control plane may have another. Ours is the whole
service in one process, with its state in a file, run as its image is.

At 1,000 nodes of 30 pods and 1,000 requests a second the built-in controller asks for more than etcd takes (\`too many requests\`, deadlines that are
exceeded). It forgets a delete that has failed five times: in an earlier run 25 pods of the 30,000 stayed on their tainted nodes until the quarter of an
hour was over.`,
    scenarios: MASS,
    pictures: {
      'performance-mass.svg': (results) => {
        const ample = MASS.map((name) => figureOf(results, name, 'evictions per second'));
        const limited = MASS.map((name) =>
          figureOf(results, name, 'evictions per second, beside the default'),
        );
        const peerOf = (figures: readonly (Figure | undefined)[]) => ({
          name: figures.find((figure) => figure?.peer)?.peer?.name ?? 'peer',
          values: figures.map((figure) => median(figure?.peer?.values ?? [])),
        });
        return {
          title: 'Evictions per second (nodes × pods)',
          unit: 'pods/s',
          things: MASS.map(shapeOf),
          series: [
            { name: 'Taintward', values: ample.map((figure) => figure && median(figure.ours)) },
            peerOf(ample),
            peerOf(limited),
          ],
        };
      },
      'performance-resident.svg': (results) =>
        ownAndPeer(
          'Resident memory at the most (nodes × pods)',
          'MiB',
          MASS.map((name) => [shapeOf(name), figureOf(results, name, 'resident, at the most')]),
        ),
    },
  },
  {
    title: 'State in the cluster',
    text: `The same, with all of the state [in the cluster itself](in-cluster.md) beside the same service with its state in a file. What etcd has of it is what the
API server's own metrics say, from the moment at which the service is ready until all is over. Each of the two has all that evicting
takes: tainting the nodes, marking and deleting pods, Events; what the state adds to it is the difference.`,
    scenarios: ['in-cluster-100x50', 'in-cluster-1000x30'],
  },
  {
    title: 'One pod',
    text: `A pod on a node of its own, a hundred times: from the moment at which a watcher sees the taint until it sees the pod go. The built-in controller
has all pods in memory, asks for the pod once more, marks and deletes it. Ours asks for the pods of the node, writes down what is to go, asks for
the pod and the node, marks the pod, asks for the node once more, and deletes: nothing goes by a taint that has just gone.`,
    scenarios: ['single'],
    pictures: {
      'performance-single.svg': (results) =>
        ownAndPeer(
          'From the taint until the pod goes',
          'ms',
          ['p50', 'p99'].map((name) => [
            name,
            figureOf(results, 'single', `from the taint until the pod goes, ${name}`),
          ]),
        ),
    },
  },
  {
    title: 'Deadlines',
    text: `A thousand countdowns that end over half a minute. How late a pod goes is counted from the moment at which the watcher saw its node's
taint, and the earliest from the moment at which the taint was asked for: one below zero would have gone too early. Tolerations are whole
seconds and all nodes are tainted at once, so 20 to 40 pods are due at one moment, and the last of them is late by what evicting that many takes:
on the same machine in an hour in which it computed half as fast, p99 was 525 ms beside 317.`,
    scenarios: ['deadlines'],
    pictures: {
      'performance-deadlines.svg': (results) =>
        ownAndPeer(
          'How late pods go after their deadline',
          'ms',
          ['late, p50', 'late, p99', 'late, the latest'].map((name) => [
            name,
            figureOf(results, 'deadlines', name),
          ]),
        ),
    },
  },
  {
    title: 'Deciding',
    text: `The pure core on one core, beside a Go program that does with the upstream library what the built-in controller does with it. Both decide the
same nodes, and have to decide the same. Seconds are those of computing.`,
    scenarios: ['deciding'],
    pictures: {
      'performance-deciding.svg': (results) =>
        ownAndPeer(
          'Pods in a second of computing',
          'pods/s',
          (results.get('deciding')?.figures ?? []).map((figure) => [figure.what, figure]),
        ),
    },
  },
  {
    title: 'Relay',
    text: `The watch relay, bundled as it is deployed, on synthetic API servers. \`npm run bench:relay\` has more to choose from, a soak among it, and
compares with earlier figures.`,
    scenarios: ['relay'],
  },
  {
    title: 'AWS calls and dollars',
    text: `What the deployed functions and relay ask of AWS, counted call by call, at the list prices of us-east-1 without any free tier. The peer is the plain
way to build the same: an item, a schedule and an invocation for each pod. The month in which nothing happens is in
[Operations](operations.md#costs).`,
    scenarios: ['costs'],
  },
  {
    title: 'Bundles and cold starts',
    text: `What Lambda loads when a function is cold: a bundle with all it needs, imported by a fresh process with its clients made. The peer is \`evict\` if it called
clusters by the generated Kubernetes client.`,
    scenarios: ['bundles'],
    pictures: {
      'performance-bundles.svg': (results) =>
        ownAndPeer(
          'Import in a fresh process',
          'ms',
          (results.get('bundles')?.figures ?? [])
            .filter(({ unit }) => unit === 'ms')
            .map((figure) => [figure.what.replace(/: .*/, ''), figure]),
        ),
    },
  },
  {
    title: 'Stores',
    text: `The adapters of the store: how many evictions a second are scheduled, read and ended. The peer of each is what it stands on, bare: the
same rows, or items, written without a lock, a schema or a history.`,
    scenarios: ['stores'],
  },
  {
    title: 'Queues',
    text: 'The queue of the embedded service, beside an SQS in the same process that speaks HTTP.',
    scenarios: ['queues'],
  },
];

/** The page and its pictures, by their paths from `docs`. */
export function performancePages(): Readonly<Record<string, string>> {
  const results = readResults();
  const pictures = SECTIONS.flatMap(({ pictures = {}, scenarios }) =>
    scenarios.some((name) => results.has(name)) ? Object.entries(pictures) : [],
  );
  return {
    'performance.md': page(results),
    ...Object.fromEntries(pictures.map(([file, bars]) => [`images/${file}`, barChart(bars(results))])),
  };
}

function readResults(): Results {
  const files = readdirSync(RESULTS).filter((file) => file.endsWith('.json'));
  const results = files.map((file) =>
    resultSchema.parse(JSON.parse(readFileSync(join(RESULTS, file), 'utf8'))),
  );
  return new Map(results.map((result) => [result.scenario, result]));
}

const page = (results: Results): string => `# Performance

Every figure here is from a file in [\`test/bench/results\`](../test/bench/results), as a run of \`npm run bench\` wrote it; \`npm run docs\` makes this
page and its pictures from them, and \`npm run test:build\` fails when they differ. Each value is the median of several runs, in which ours and its peer
took turns, so that whatever else the machine did slowed both. The ratio is ours by the peer's.

\`\`\`sh
npm run bench -- deciding bundles queues   # what needs nothing but npm; --help names all
\`\`\`

Evictions want a disposable cluster and the real controller: \`KUBECONFIG\` and \`KCM_BIN\`, as [for the tests](../CONTRIBUTING.md#tests). \`.ci/bench\` has
both, and DynamoDB Local, where Go and Maven are; without names it measures everything, which took ${took(results)} and wants a quiet machine.
\`--short\` shows within seconds that a scenario works, and writes nothing.

## What was aimed at

${aims(results)}

${SECTIONS.map((section) => sectionText(section, results)).join('\n\n')}
`;

function took(results: Results): string {
  const minutes = [...results.values()].reduce((sum, { tookSeconds }) => sum + tookSeconds, 0) / 60;
  return `${Math.ceil(minutes)} minutes`;
}

function aims(results: Results): string {
  const aimed = SECTIONS.flatMap(({ scenarios }) => scenarios).flatMap((scenario) =>
    (results.get(scenario)?.figures ?? [])
      .filter(({ aim }) => aim !== undefined)
      .map((figure) => ({ scenario, figure, met: meetsAim(figure) })),
  );
  const missed = aimed.filter(({ met }) => met === false).length;
  const head = ['', 'found', 'aim'];
  const rows = aimed.map(({ scenario, figure }) => [
    `${scenario}: ${figure.what}`,
    figure.aim?.of === 'ratio' ? ratioText(ratioOf(figure)) : amount(median(figure.ours), figure.unit),
    aimText(figure),
  ]);
  return `Of ${aimed.length} aims ${missed === 0 ? 'all are met' : `${missed} are not met (✗)`}.\n\n${table(head, rows)}`;
}

function sectionText({ title, text, scenarios, pictures = {} }: Section, results: Results): string {
  const measured = scenarios.filter((name) => results.has(name));
  const shown = measured.length > 0 ? Object.entries(pictures) : [];
  return [
    `## ${title}`,
    text,
    ...shown.map(([file, bars]) => `![${bars(results).title}](images/${file})`),
    ...scenarios.map((name) => resultText(name, results.get(name))),
  ].join('\n\n');
}

function resultText(name: string, result: Result | undefined): string {
  if (result === undefined) return `Not measured yet: \`npm run bench -- ${name}\`.`;
  const { about, command, measuredAt, tookSeconds, machine, load, figures } = result;
  const runs = Math.max(...figures.map(({ ours }) => ours.length));
  const rows = figures.map((figure) => [
    figure.what,
    amount(median(figure.ours), figure.unit),
    figure.peer ? `${amount(median(figure.peer.values), figure.unit)} (${figure.peer.name})` : '',
    figure.peer ? ratioText(ratioOf(figure)) : '',
    aimText(figure),
    figure.note ?? '',
  ]);
  const columns = ['', 'ours', 'peer', 'ratio', 'aim', ''];
  const used = columns.map((_, index) => index === 0 || rows.some((row) => row[index] !== ''));
  const pick = (cells: readonly string[]) => cells.filter((_, index) => used[index]);
  return [
    `**${about[0]?.toUpperCase()}${about.slice(1)}**`,
    table(pick(columns), rows.map(pick)),
    `\`${command}\`, ${measuredAt.slice(0, 10)}, ${runs} run${runs === 1 ? '' : 's'} in ${tookSeconds} s; ${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, Node ${machine.node}; load ${load.before[0]} before, ${load.after[0]} after.`,
  ].join('\n\n');
}
