import { hash } from 'node:crypto';

/**
 * The number of invocations of each function in a chain of requests, by a hash of its name, as Lambda passes it in
 * `X-Amzn-Trace-Id`. The format is that of the X-Ray Developer Guide ("Tracing header"):
 * `Lineage=a87bd80c:1|68fd508a:5`.
 */
export type Lineage = ReadonlyMap<string, number>;

/**
 * Lambda stops the next invocation after this many of one function in a chain (Lambda Developer Guide, "recursive loop
 * detection").
 */
export const MAX_CHAIN = 16;

const HASH_CHARACTERS = 8;

export const hashOf = (functionName: string): string =>
  hash('sha256', functionName).slice(0, HASH_CHARACTERS);

/** Returns the lineage in a trace header; an empty one if there is none. */
export function lineageIn(header = ''): Lineage {
  const [, text = ''] = /(?:^|;)Lineage=([^;]*)/.exec(header) ?? [];
  const pairs = text.split('|').map((part) => part.split(':').slice(-2));
  return new Map(pairs.flatMap(([name = '', count]) => (count === undefined ? [] : [[name, Number(count)]])));
}

export const lineageText = (lineage: Lineage): string =>
  `Lineage=${[...lineage].map(([name, count]) => `${name}:${count}`).join('|')}`;

/** Returns the lineage of a batch of messages: the longest chain of each function. */
export function joined(lineages: readonly Lineage[]): Lineage {
  const longest = new Map<string, number>();
  for (const [name, count] of lineages.flatMap((each) => [...each]))
    longest.set(name, Math.max(count, longest.get(name) ?? 0));
  return longest;
}
