import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, test } from 'node:test';
import { FLOORS, type Room, SIMULATOR, SIMULATOR_HOST, STOREYS } from '../../../docs/generator/house.ts';

const ROOT = posix.join(import.meta.dirname, '../../..');

/** Imports that run up, as "file → file". It stays empty. */
const EXCEPTIONS: readonly string[] = [];

const IMPORT =
  /^(?:import|export)\s[^'"]*?from\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)|^import\s+'([^']+)'/gm;

const files = globSync('{cdk,deploy,functions,shared,simulator}/**/*.ts', {
  cwd: ROOT,
  exclude: ['**/node_modules/**'],
});

/** What each file imports of the project, types included. */
const imports = new Map(
  files.map((file) => {
    const found = [...readFileSync(posix.join(ROOT, file), 'utf8').matchAll(IMPORT)];
    const paths = found.map(([, from, lazily, plain]) => pathOf(file, from ?? lazily ?? plain ?? ''));
    return [file, paths.filter((path) => path?.endsWith('.ts')) as string[]] as const;
  }),
);

function pathOf(file: string, specifier: string): string | undefined {
  if (specifier.startsWith('#')) return specifier.slice(1);
  return specifier.startsWith('.') ? posix.join(posix.dirname(file), specifier) : undefined;
}

const isIn = (room: string) => (file: string) => file.startsWith(`${room}/`);

/** The floor on which a file stands: that of the most specific room. */
function floorOf(file: string): number {
  const rooms = FLOORS.filter((room) => isIn(room)(file)).toSorted((a, b) => b.length - a.length);
  return FLOORS.indexOf(rooms[0] ?? '');
}

/** A program of `functions`, a part of `deploy`, or a room of `shared` with its parts: `shared/state/sqlite`. */
function roomOf(file: string): string {
  const parts = posix.dirname(file).split('/');
  if (parts[0] === 'functions' || parts[0] === 'deploy') return parts.slice(0, 2).join('/');
  return parts.slice(0, parts[0] === 'shared' ? 3 : 1).join('/');
}

function arrows(): readonly (readonly [string, string])[] {
  return [...imports].flatMap(([file, paths]) => paths.map((path) => [file, path] as const));
}

/** The circles of a graph, each as its members (Tarjan's algorithm). */
function circlesOf(edges: readonly (readonly [string, string])[]): readonly (readonly string[])[] {
  const next = Map.groupBy(edges, ([from]) => from);
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (name: string): number => {
    const at = index.size;
    index.set(name, at);
    low.set(name, at);
    open.push(name);
    for (const [, to] of next.get(name) ?? []) {
      const seen = index.get(to);
      if (seen === undefined) low.set(name, Math.min(low.get(name) ?? at, visit(to)));
      else if (open.includes(to)) low.set(name, Math.min(low.get(name) ?? at, seen));
    }
    if (low.get(name) === at) {
      const members = open.splice(open.indexOf(name));
      if (members.length > 1) circles.push(members);
    }
    return low.get(name) ?? at;
  };
  for (const name of next.keys()) if (!index.has(name)) visit(name);
  return circles;
}

/** The directories with code right in a room, without those that are rooms of their own. */
function partsOf({ path }: Room): ReadonlySet<string> {
  const inside = files.filter(isIn(path)).map((file) => file.slice(path.length + 1).split('/'));
  const parts = inside.filter(({ length }) => length > 1).map(([part = '']) => part);
  return new Set(parts.filter((part) => !FLOORS.includes(`${path}/${part}`)));
}

describe('the picture of the house', () => {
  const rooms = [...STOREYS.flatMap((storey) => storey.rooms), SIMULATOR];

  test('shows no room without code', () => {
    assert.deepEqual(
      rooms.filter(({ path }) => !files.some(isIn(path))),
      [],
    );
  });

  test('names all parts of each room', () => {
    for (const room of rooms) assert.deepEqual(new Set(room.parts), partsOf(room), room.path);
  });
});

describe('imports of the product', () => {
  test('name files that exist, in rooms with a floor', () => {
    assert.ok(files.length > 500);
    assert.deepEqual(
      arrows().filter(([, to]) => !imports.has(to)),
      [],
    );
    assert.deepEqual(
      files.filter((file) => floorOf(file) < 0 && !isIn(SIMULATOR.path)(file)),
      [],
    );
  });

  test('run down only', () => {
    const isUp = ([from, to]: readonly [string, string]) =>
      !isIn(SIMULATOR.path)(from) && !isIn(SIMULATOR.path)(to) && floorOf(to) < floorOf(from);
    const up = arrows()
      .filter(isUp)
      .map((arrow) => arrow.join(' → '));
    assert.deepEqual(up, EXCEPTIONS);
  });

  test('never run from one program to another', () => {
    const isAcross = ([from, to]: readonly [string, string]) =>
      isIn('functions')(from) && isIn('functions')(to) && roomOf(from) !== roomOf(to);
    assert.deepEqual(arrows().filter(isAcross), []);
  });

  test('form no circle of files', () => {
    assert.deepEqual(circlesOf(arrows()), []);
  });

  test('form no circle of rooms', () => {
    const between = arrows()
      .map(([from, to]) => [roomOf(from), roomOf(to)] as const)
      .filter(([from, to]) => from !== to);
    assert.deepEqual(circlesOf(between), []);
  });

  test('of the simulated cluster are made by the service alone', () => {
    const strays = arrows().filter(([from, to]) => isIn(SIMULATOR.path)(to) && !isIn(SIMULATOR.path)(from));
    assert.deepEqual([...new Set(strays.map(([from]) => roomOf(from)))], [SIMULATOR_HOST]);
  });
});

test('middy and the types of Lambda events are imported by the Lambda host alone', () => {
  const HOST = /^(shared\/aws\/consume\.ts$|functions\/(deltas|evict|expiry|heartbeat)\/)/;
  const outside = files.filter(
    (file) =>
      !HOST.test(file) && /from '(@middy\/|aws-lambda')/.test(readFileSync(posix.join(ROOT, file), 'utf8')),
  );
  assert.deepEqual(outside, []);
});

test('circles are found wherever they begin', () => {
  const edges = [
    ['a', 'b'],
    ['b', 'c'],
    ['c', 'b'],
    ['c', 'd'],
  ] as const;
  assert.deepEqual(
    circlesOf(edges).map((each) => each.toSorted()),
    [['b', 'c']],
  );
  assert.deepEqual(circlesOf([['a', 'b']]), []);
});
