import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';

/** Keys with a meaning to JavaScript, to a store, or in a line of text, and one that is merely unknown. */
const KEYS = [
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', 'then', 'length'],
  ...[
    '',
    ' ',
    '0',
    '-1',
    'x',
    'v',
    '#',
    '.',
    'a.b',
    'a\nb',
    '\u0000',
    '\ud800',
    'ключ',
    '🔥',
    'k'.repeat(5_000),
  ],
];

/** Numbers that JSON may contain, including ones that a double cannot hold. */
const NUMBERS = [
  ...['-0', '1e999', '-1e999', '1e308', '5e-324', '0.1', '1E+2', '-1', '2147483648', '4294967296'],
  ...['8640000000000000', '8640000000000001', '9007199254740991', '9007199254740993', '9223372036854775808'],
  ...['-9223372036854775809', '123456789012345678901234567890123456789'],
];

const TEXTS = [
  ...[
    '',
    ' ',
    '\n',
    '\t',
    '\u0000',
    '\u001b[31m',
    '\ud800',
    '\udfff\ud800',
    '\ufeff',
    '\u202e',
    '\uffff',
    '﷽',
    '🔥',
  ],
  ...['__proto__', 'null', 'true', '{}', '[', '"', "'", '\\', '`'],
  ...[
    '%00',
    '%',
    '..',
    '../../../etc/passwd',
    '<script>alert(1)</script>',
    '$(id)',
    '{{1}}',
    "' OR 1=1 --",
    '#',
    'a#b',
  ],
  ...[
    '0001-01-01T00:00:00Z',
    '1969-12-31T23:59:59Z',
    '+275760-09-13T00:00:00Z',
    '9999-12-31T23:59:59Z',
    'now',
  ],
  ...['9223372036854775807', '-9223372036854775808', '9223372036854775808', '007', '1e3', '0x10', '300'],
  ...['a'.repeat(254), 'é'.repeat(2_000), `${'a-'.repeat(5_000)}!`, `${' '.repeat(5_000)}x`],
];

/** Generates texts of any characters, including unpaired surrogates. */
const anyText = (maxLength: number): fc.Arbitrary<string> =>
  fc
    .array(fc.oneof(fc.nat(0x7f), fc.nat(0xffff), fc.nat(0x10ffff)), { maxLength })
    .map((codes) => String.fromCodePoint(...codes));

/** Texts that a reader may interpret in an unintended way, and texts without a meaning. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 1, arbitrary: fc.constantFrom(...KEYS) },
  { weight: 1, arbitrary: fc.constantFrom(...NUMBERS) },
  { weight: 1, arbitrary: anyText(20) },
);

const parsed = (text: string): unknown => JSON.parse(text);

/** Values for a field, both absurd and plausible. Numbers keep their notation. */
const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<unknown>(null, true, false, 0, 1, -1, 1.5, 60, 1_795_348_800_000) },
  { weight: 3, arbitrary: fc.constantFrom(...NUMBERS).map((text) => JSON.rawJSON(text)) },
  { weight: 4, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 2, arbitrary: anyText(20) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('[]', '{}', '[[]]', '[null]', '[{}]', '{"":{}}', '[0]').map(parsed),
  },
  { weight: 2, arbitrary: fc.constantFrom(...KEYS).map((key) => parsed(`{${JSON.stringify(key)}:{"x":1}}`)) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 300 }).map((depth) => parsed('['.repeat(depth) + ']'.repeat(depth))),
  },
);

const WAYS = ['replace', 'replace', 'replace', 'remove', 'add', 'rename', 'repeat', 'graft'] as const;

const edit = fc.record({
  way: fc.constantFrom(...WAYS),
  where: fc.nat(),
  from: fc.nat(),
  key: fc.constantFrom(...KEYS),
  value,
});
type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never;

/** Reports whether an object is a number in its original notation. Only these are frozen here. */
const isRaw = (json: object): boolean => Object.isFrozen(json);

/** Values with more places than this are not enlarged. */
const MAX_PLACES = 1_000;

/** A place in a JSON value: its container, and its key there. */
interface Place {
  readonly holder: object;
  readonly key: string;
}

function placesOf(holder: object): Place[] {
  return Object.entries(holder).flatMap(([key, inner]) => [
    { holder, key },
    ...(typeof inner === 'object' && inner !== null && !isRaw(inner) ? placesOf(inner) : []),
  ]);
}

const at = ({ holder, key }: Place): unknown => Object.getOwnPropertyDescriptor(holder, key)?.value;

/** Sets an own property, for any key. */
const put = (holder: object, key: string, given: unknown) =>
  Object.defineProperty(holder, key, { value: given, enumerable: true, configurable: true, writable: true });

function edited(root: { sample: unknown }, { way, where, from, key, value: given }: Edit): void {
  const places = placesOf(root);
  if (places.length > MAX_PLACES) return;
  const place = places[where % places.length];
  const other = places[from % places.length];
  if (!place || !other) return;
  const { holder } = place;
  const old = at(place);
  switch (way) {
    case 'replace':
      put(holder, place.key, given);
      return;
    case 'remove':
      if (holder === root) return;
      if (Array.isArray(holder)) holder.splice(Number(place.key), 1);
      else Reflect.deleteProperty(holder, place.key);
      return;
    case 'add':
      if (typeof old === 'object' && old !== null && !Array.isArray(old) && !isRaw(old)) put(old, key, given);
      return;
    case 'rename':
      if (holder === root || Array.isArray(holder)) return;
      Reflect.deleteProperty(holder, place.key);
      put(holder, key, old);
      return;
    case 'repeat':
      if (Array.isArray(old) && old.length > 0)
        put(
          holder,
          place.key,
          Array.from({ length: 1 + (from % 100) }, (_, index) => old[index % old.length]),
        );
      return;
    case 'graft':
      put(holder, place.key, copyOf(at(other)));
      return;
    default:
      way satisfies never;
  }
}

const copyOf = (json: unknown): unknown => JSON.parse(JSON.stringify(json) ?? 'null');

/** Generates values like these, each with one to four faults. The values are JSON, with raw numbers. */
export const spoilt = (samples: readonly unknown[]): fc.Arbitrary<unknown> =>
  fc
    .record({ sample: fc.constantFrom(...samples), edits: fc.array(edit, { minLength: 1, maxLength: 4 }) })
    .map(({ sample, edits }) => {
      const root = { sample: copyOf(sample) };
      for (const each of edits) edited(root, each);
      return root.sample;
    });

const cut = fc.record({
  way: fc.constantFrom('truncate', 'flip', 'insert', 'delete', 'double', 'duplicate-key'),
  where: fc.nat(),
  length: fc.nat(40),
  text: fc.oneof(anyText(4), fc.constantFrom(...TEXTS)),
});

/** Generates texts like these in which a piece is missing, doubled or replaced. */
export const torn = (samples: readonly string[]): fc.Arbitrary<string> =>
  fc
    .record({ sample: fc.constantFrom(...samples), cuts: fc.array(cut, { minLength: 1, maxLength: 3 }) })
    .map(({ sample, cuts }) =>
      cuts.reduce((whole, { way, where, length, text }) => {
        const from = where % (whole.length + 1);
        const [before, after] = [whole.slice(0, from), whole.slice(from)];
        switch (way) {
          case 'truncate':
            return before;
          case 'flip':
            return before + text + after.slice(text.length);
          case 'insert':
            return before + text + after;
          case 'delete':
            return before + after.slice(length);
          case 'double':
            return before + after.slice(0, length) + after;
          case 'duplicate-key':
            return whole.replace(
              /\{\s*("[a-zA-Z]+"\s*:)/,
              (brace, key) => `${brace.slice(0, 1)}${key}null,${key}`,
            );
          default:
            return way satisfies never;
        }
      }, sample),
    );

/** Texts without any similarity to a sample. */
export const garbage: fc.Arbitrary<string> = fc.oneof(
  anyText(200),
  fc.json(),
  fc.constantFrom(...TEXTS, ...NUMBERS, 'null', '[]', '{}', '""'),
  fc
    .record({ open: fc.constantFrom('[', '{"a":', '[{"":', '((', '- ', '? ', '{a: '), times: fc.nat(5_000) })
    .map(({ open, times }) => open.repeat(times)),
  fc.nat(3_000).map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
  fc.nat(3_000).map((depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`),
  { weight: 1, arbitrary: fc.nat(50_000).map((length) => `"${'x'.repeat(length)}"`) },
);

/** Generates texts of JSON: nearly valid ones, torn ones, and garbage. */
export const hostileJson = (samples: readonly unknown[]): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom(...samples).map((sample) => JSON.stringify(sample)) },
    { weight: 12, arbitrary: spoilt(samples).map((json) => JSON.stringify(json) ?? '') },
    { weight: 4, arbitrary: torn(samples.map((sample) => JSON.stringify(sample))) },
    { weight: 2, arbitrary: garbage },
  );

/** Reports whether two readings mean the same; a number written as -0 equals 0. */
export const sameMeaning = (a: unknown, b: unknown): boolean =>
  isDeepStrictEqual(a, b) || isDeepStrictEqual(copied(a), copied(b));

const copied = (read: unknown): unknown =>
  JSON.parse(
    JSON.stringify(read, (_key, part: unknown) => (typeof part === 'bigint' ? `${part}n` : part)) ?? 'null',
  );
