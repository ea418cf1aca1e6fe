import { type NodeName, nodeName } from '#shared/eviction/identity.ts';

/**
 * The API server's beginning of a pod event, in the order of its Go structs (`TypeMeta`, then `ObjectMeta`), without
 * white space.
 */
const HEAD =
  /^\{"type":"(?:ADDED|MODIFIED|DELETED)","object":\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":"[-a-z0-9.]+",(?:"generateName":"[-a-z0-9.]+",)?"namespace":"[-a-z0-9]+",(?:"selfLink":"[-a-z0-9./]*",)?"uid":"[-0-9a-zA-Z]+","resourceVersion":"([1-9][0-9]*)",/;
/** Longer than any head: two names of 253 characters, a namespace of 63, and a self link with both. */
const HEAD_BYTES = 1500;
const KEY = '"nodeName"';
const VALUE = /^:"([-a-z0-9.]+)"/;
/** Maximum length of a node's name, with its surroundings. */
const VALUE_BYTES = 260;

/**
 * Returns the version of a watch event about a pod on a node that is not followed, without parsing the event.
 * `undefined`: the event is about a followed node, or there is any doubt. Quotation marks in strings are escaped, so
 * `"nodeName"` is a whole key or value. If it occurs once, and a name follows, the pod is bound to that node, or to
 * none.
 */
export function versionPassed(line: Buffer, follows: (node: NodeName) => boolean): string | undefined {
  const at = line.indexOf(KEY);
  if (at < 0 || line.indexOf(KEY, at + KEY.length) >= 0) return undefined;
  const [, name] = VALUE.exec(line.toString('latin1', at + KEY.length, at + KEY.length + VALUE_BYTES)) ?? [];
  if (name === undefined || follows(nodeName(name))) return undefined;
  return HEAD.exec(line.toString('latin1', 0, HEAD_BYTES))?.[1];
}
