import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command, Option } from 'commander';
import fc from 'fast-check';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { run } from '#functions/cli/run.ts';
import { AccessError } from '#shared/access/access-error.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { openFleet, openLive } from '#shared/operations/fleet/open-fleet.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { aNode, anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { controllerManager, shownCluster } from '#test/world/shown-cluster.ts';
import { leavesOf } from '../../docs/generator/cli-page.ts';
import { emptied, emptyRules } from './emptied.ts';
import { hostileText } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { INTERNALS, must } from './refusal.ts';

/** The arguments after the program's name. */
type CommandLine = readonly string[];

/**
 * Commands that are not tested: `console` serves a page until it is stopped, and `complete` reads the process's own command line.
 */
const NOT_HERE = ['console', 'complete'];

const KUBECONFIG = `
current-context: kind
clusters: [{ name: kind, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: kind, user: { token: t } }]
contexts: [{ name: kind, context: { cluster: kind, user: kind } }]
`;
const MANIFEST = `
apiVersion: v1
kind: Pod
metadata: { name: web-0, namespace: shop }
spec: { tolerations: [{ key: a, operator: Exists, effect: NoExecute, tolerationSeconds: -1 }] }
`;

/** Valid values of arguments and options, by their names. */
const RIGHT: Readonly<Record<string, readonly string[]>> = {
  cluster: ['prod', 'stage'],
  clusters: ['prod', 'stage'],
  name: ['prod', 'new', 'n1', 'shop'],
  pod: ['default/web-0', 'shop/web-0'],
  node: ['n1'],
  workload: ['shop/Deployment/web'],
  hold: ['h3f9a2c1d', 'guard'],
  id: ['1', 'x'],
  duration: ['15m', '4d'],
  when: ['2h', '2026-11-20', '2026-11-20T08:00:00Z'],
  taint: ['maintenance=x:NoExecute', 'maintenance:NoExecute'],
  selector: ['app=web', 'app in (web,db),!x'],
  labels: ['app=web'],
  where: ['pods', 'nodes'],
  keys: ['node.kubernetes.io/unreachable'],
  seconds: ['90', '3600'],
  number: ['1', '500'],
  text: ['because'],
  format: ['json', 'yaml', 'wide', 'table'],
  region: ['eu-west-1'],
  arn: [
    'arn:aws:iam::111122223333:role/taintward-access',
    'arn:aws:secretsmanager:eu-west-1:111122223333:secret:edge',
  ],
};
const FLAGS = [
  '--',
  '--no-such',
  '-x',
  '-xyz',
  '--__proto__',
  '--constructor=1',
  '--help',
  '--version',
  '-o',
];

/**
 * Command lines of each command, with valid and invalid arguments and options. Each ends with a documented exit code, reports an
 * error in one sentence, and writes no control sequences to the terminal.
 */
export const commandLines: Kind<CommandLine> = {
  name: 'command-lines',
  open: async () => {
    const directory = mkdtempSync(join(tmpdir(), 'taintward-fuzz-'));
    const files = ['policy.yaml', 'pod.yaml', 'config'].map((name) => join(directory, name));
    for (const [index, text] of ['mode: observe\n', MANIFEST, KUBECONFIG].entries())
      writeFileSync(files[index] ?? '', text);
    const before = process.env['KUBECONFIG'];
    process.env['KUBECONFIG'] = join(directory, 'config');
    const closing: (() => void)[] = [() => rmSync(directory, { recursive: true })];
    const world = aWorld((close) => closing.push(close as () => void));
    return {
      inputs: linesOf({ ...RIGHT, file: files, path: files, dir: [directory] }),
      feed: (line) => feed(line, world),
      close: () => {
        if (before === undefined) delete process.env['KUBECONFIG'];
        else process.env['KUBECONFIG'] = before;
        for (const close of closing) close();
      },
    };
  },
};

interface Leaf {
  readonly words: readonly string[];
  readonly command: Command;
}

/** Returns values for a parameter of that name, mostly valid ones. */
type ValueNamed = (name: string) => fc.Arbitrary<string>;

function linesOf(right: typeof RIGHT): fc.Arbitrary<CommandLine> {
  const program = createProgram({} as CliDeps);
  const leaves = leavesOf(program, program.createHelp())
    .map((command): Leaf => ({ command, words: wordsOf(command) }))
    .filter(({ words: [first = ''] }) => !NOT_HERE.includes(first));
  const any = Object.values(right).flat();
  const value = fc.oneof(fc.constantFrom(...any), hostileText);
  const valueNamed: ValueNamed = (name) =>
    fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...(right[name] ?? any)) }, value);
  const token = fc.oneof(value, fc.constantFrom(...FLAGS, ...leaves.flatMap(({ words }) => words)));
  const edits = fc.array(
    fc.record({ way: fc.constantFrom('drop', 'insert', 'replace', 'double'), where: fc.nat(), token }),
    { maxLength: 2 },
  );
  return fc
    .tuple(
      fc.constantFrom(...leaves).chain((leaf) => lineOf(leaf, program, valueNamed)),
      edits,
    )
    .map(([line, changes]) =>
      changes
        .reduce<CommandLine>((so, { way, where, token: given }) => {
          const at = where % (so.length + 1);
          const taken = { drop: 1, insert: 0, replace: 1, double: 0 }[way];
          const put = { drop: [], insert: [given], replace: [given], double: so.slice(at, at + 1) }[way];
          return so.toSpliced(at, taken, ...put);
        }, line)
        .map(asSystemsPassIt)
        // Standard input has no data here, and the test must not read files of the working directory.
        .filter((each) => !/^(?:-f|--file=)?(?:-|\.\.?)$/.test(each)),
    );
}

/** An argument of a process ends at its first NUL, and consists of whole characters. */
const asSystemsPassIt = (text: string): string => text.replaceAll('\0', '').toWellFormed();

const wordsOf = (command: Command): readonly string[] =>
  command.parent ? [...wordsOf(command.parent), command.name()] : [];

/** Generates a line of a command, with arguments, some of its options and some global options. */
function lineOf({ words, command }: Leaf, program: Command, valueNamed: ValueNamed) {
  const takesOne = ({ required, optional }: Option) => required || optional;
  const valueFor = ({ flags }: Option) => valueNamed(/<(.*)>/.exec(flags)?.[1] ?? '');
  const options = [...command.options, ...program.options].filter(({ long }) => long !== '--version');
  const option = fc
    .constantFrom(...options)
    .chain((each) => fc.tuple(fc.constant(each), valueFor(each), fc.boolean()))
    .map(([option, given, isJoined]) => {
      const flag = option.long ?? option.short ?? '';
      if (!takesOne(option)) return [flag];
      return isJoined ? [`${flag}=${given}`] : [flag, given];
    });
  const mandatory = options
    .filter((each) => each.mandatory)
    .map((each) => valueFor(each).map((given) => [each.long ?? '', given]));
  return fc
    .tuple(
      fc.tuple(...command.registeredArguments.map((each) => valueNamed(each.name()))),
      fc.tuple(...mandatory),
      fc.array(option, { maxLength: 2 }),
    )
    .map(([args, musts, some]) => [...words, ...args, ...musts.flat(), ...some.flat()]);
}

/** Returns a real embedded fleet, except for the parts that would call AWS. */
function aWorld(after: (close: () => unknown) => void) {
  const clock = new DrivenClock(NOW);
  const refuses = async () => {
    throw new ApiError('The cluster refuses it.', 403, 'Forbidden');
  };
  const shown = {
    ...controllerManager('off'),
    '/version': { gitVersion: 'v1.36.3' },
    '/api/v1/nodes': [{ metadata: { name: 'n1', labels: { app: 'web' } }, spec: { taints: [] } }],
  };
  const registry = () => {
    const fake = new FakeDynamoDb({ now: () => NOW });
    const client = fakeClient(async (command) => fake.perform(command));
    return new DynamoDbClusterRegistry(new DynamoDbTable({ client, tableName: 't' }));
  };
  const parts: Partial<Fleet> = {
    kind: 'deployed',
    cluster: async () => {
      const { objects, ...live } = shownCluster(shown, NOW);
      const writes = { apply: refuses, tryCreate: refuses, create: refuses, remove: refuses };
      return { ...live, objects: Object.assign(objects, writes) as ClusterObjects };
    },
  };
  const world = embeddedFleet({ after }, { clusters: ['prod', 'stage'], clock }, parts);
  world.letters.add('evictions-due', { body: 'x' }, 'it was');
  return { ...world, clock, registry };
}
type World = ReturnType<typeof aWorld>;

async function feed(
  line: CommandLine,
  { fleet: given, store, rules, clock, registry }: World,
): Promise<Outcome> {
  emptied(store);
  emptyRules(rules);
  const ref = aRef(clusterName('prod'), 'n1');
  await store.commit(ref, 0, { node: aNode(), schedule: [aRecord()], end: [], live: true }, NOW);
  await store.end(ref, [anEnding()], NOW);
  const fleet: Fleet = { ...given, registry: registry() };
  const connect: CliDeps['connect'] = () => ({
    host: 'nowhere',
    requestOptions: () => Promise.reject(new AccessError('there is no way to it')),
  });
  const deps = { clock, connect, hint: () => undefined };
  let [printed, complained] = ['', ''];
  const code = await run(line, {
    clock,
    connect,
    fleet: async (choice) => (choice.stateDir === undefined ? fleet : openFleet(choice, deps)),
    live: async (choice) => {
      const { table: _, ...others } = choice;
      return choice.context === undefined && choice.stateDir === undefined ? fleet : openLive(others, deps);
    },
    print: (text) => {
      printed += text;
    },
    complain: (text) => {
      complained += text;
    },
    paint: (_, text) => text,
    progress: () => undefined,
    watch: async (read) => {
      printed += await read();
    },
  });
  for (const text of [printed, complained]) {
    const [acts] = ACTED_UPON.exec(text.replaceAll(STYLES, '')) ?? [];
    must(
      acts === undefined,
      `${JSON.stringify(acts)} comes to the terminal: ${JSON.stringify(text.slice(0, 500))}`,
    );
  }
  // Commands that change something print the fleet first.
  const shown = withoutWords(complained, line).replace(/^Fleet: .*\n/, '');
  const lines = shown.split('\n').filter((each) => each !== '');
  switch (code) {
    case 0:
    case 2:
    case 69:
      must(printed !== '' || shown !== '', 'says nothing');
      return 'accepted';
    case 1:
      must(
        (lines.length === 1 && shown.startsWith('taintward: ')) || COUNTED_FAULTS.test(lines.at(-1) ?? ''),
        `fails by more than one sentence: ${shown}`,
      );
      break;
    case 64:
      must(
        shown.startsWith('error: ') || lines.length > 0,
        `is no command line, and nothing says why: ${shown}`,
      );
      break;
    default:
      code satisfies never;
  }
  const [internal] = INTERNALS.exec(shown) ?? [];
  must(internal === undefined, `is refused by ${JSON.stringify(internal)}: ${shown.slice(0, 1_000)}`);
  return 'refused';
}

/** Documents may have several faults, each in a sentence above this one. */
const COUNTED_FAULTS = /^taintward: \d+ faults?\. Nothing was changed\.$/;
/** The escape sequences of styles, which are allowed in any output. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: styles begin so
const STYLES = /\u001b\[(?:1|2|22|3[1-6]|39)m/g;
const ACTED_UPON = /(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** Removes the words of the command line, which the program does not choose. */
const withoutWords = (text: string, line: CommandLine): string =>
  line
    .flatMap((word) => [word, ...word.split('=')])
    .map(escapeForDisplay)
    .filter(({ length }) => length > 3)
    .sort((a, b) => b.length - a.length)
    .reduce((left, word) => left.replaceAll(word, '…'), text);
