/*
 * The house: the rooms of the product, from the roof to the ground. `test/unit/house` holds the imports to it, and
 * `house-picture.ts` draws it.
 */

/** A directory with code, and its purpose in a few words. */
export interface Room {
  readonly path: string;
  readonly purpose: string;
  /** Its directories with code, with their sub-rooms; the same test compares them with the repository. */
  readonly parts?: readonly string[];
}

/** Rooms that are drawn side by side. Within a storey, a file imports from its own room and from rooms further right. */
export interface Storey {
  readonly name: string;
  readonly note: string;
  readonly rooms: readonly Room[];
}

export const STOREYS: readonly Storey[] = [
  {
    name: 'Delivery',
    note: 'builds and installs',
    rooms: [
      { path: 'deploy/release', purpose: 'files of a release' },
      { path: 'deploy/krew', purpose: 'kubectl plugin' },
      { path: 'deploy', purpose: 'chart, manifests' },
      { path: 'cdk', purpose: 'AWS stack, alarms, IAM' },
      { path: 'deploy/build', purpose: 'bundles' },
    ],
  },
  {
    name: 'Programs',
    note: 'open ports, start the engine, decide nothing',
    rooms: [
      {
        path: 'functions',
        purpose: 'one directory for each program; none imports another',
        parts: ['relay', 'deltas', 'evict', 'expiry', 'heartbeat', 'service', 'agent', 'cli', 'console'],
      },
    ],
  },
  {
    name: 'Operators',
    note: 'questions and actions',
    rooms: [
      { path: 'shared/console', purpose: 'server and API of the console' },
      {
        path: 'shared/operations',
        purpose: 'read state, explain, act, take over',
        parts: ['acts', 'ask', 'fleet', 'look', 'takeover'],
      },
    ],
  },
  {
    name: 'Engine',
    note: 'from a taint to a deleted pod',
    rooms: [
      {
        path: 'shared/aws',
        purpose: 'SQS, Scheduler, metrics',
        parts: ['relay'],
      },
      {
        path: 'shared/engine',
        purpose: 'without SQS, Lambda, or SQL types',
        parts: ['watch', 'decide', 'evict', 'clusters', 'work-queue'],
      },
      { path: 'shared/access', purpose: 'EKS, secrets, contexts' },
    ],
  },
  {
    name: 'Ports',
    note: 'state, API server, log',
    rooms: [
      { path: 'shared/conditions', purpose: 'required actions' },
      {
        path: 'shared/state',
        purpose: 'ports of state',
        parts: ['dynamodb', 'objects', 'sqlite'],
      },
      {
        path: 'shared/kubernetes',
        purpose: 'calls of one API server',
        parts: ['http', 'kubeconfig'],
      },
      { path: 'shared/telemetry', purpose: 'log, metrics' },
    ],
  },
  {
    name: 'Pure',
    note: 'no clock, no I/O, no randomness',
    rooms: [
      { path: 'shared/explain', purpose: 'why: explanations, forecasts' },
      { path: 'shared/eviction', purpose: 'plan, evaluate, retry, policy' },
      { path: 'shared/taints', purpose: 'tolerations and deadlines' },
    ],
  },
  {
    name: 'Ground',
    note: 'small tools',
    rooms: [
      { path: 'shared/http', purpose: 'HTTP listener' },
      { path: 'shared/files', purpose: 'private files' },
      { path: 'shared/time', purpose: 'clocks, ages, waits' },
      { path: 'shared/text', purpose: 'texts for people' },
      { path: 'shared', purpose: 'version.ts' },
    ],
  },
];

/** All rooms, the top one first: a file imports from its own room and from rooms further down. */
export const FLOORS: readonly string[] = STOREYS.flatMap(({ rooms }) => rooms.map(({ path }) => path));

/** The simulated cluster stands beside the house. Only one program starts it. */
export const SIMULATOR: Room = {
  path: 'simulator',
  purpose: 'simulated cluster',
  parts: ['api', 'controllers', 'objects'],
};

/** The only program that imports the simulated cluster. */
export const SIMULATOR_HOST = 'functions/service';
