import { type NodeName, nodeName } from '#shared/eviction/identity.ts';

/**
 * How the API server begins an event of a pod, in the order of its Go structs (`TypeMeta`, then `ObjectMeta`), without
 * white space.
 */
const HEAD =
  /^\{"type":"(?:ADDED|MODIFIED|DELETED)","object":\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":"[-a-z0-9.]+",(?:"generateName":"[-a-z0-9.]+",)?"namespace":"[-a-z0-9]+",(?:"selfLink":"[-a-z0-9./]*",)?"uid":"[-0-9a-zA-Z]+","resourceVersion":"([1-9][0-9]*)",/;
/** Longer than any head: two names of 253, a namespace of 63, a self link of both. */
const HEAD_BYTES = 1500;
const KEY = '"nodeName"';
const VALUE = /^:"([-a-z0-9.]+)"/;
/** As long as a node's name may be, with what is around it. */
const VALUE_BYTES = 260;

/**
 * Reads of a line of a watch only what tells that it is about a pod on a node that is not followed. Returns its version
 * then; `undefined`: it is about a followed node, or there is any doubt. Written inside a string, a quotation mark is
 * escaped, so `"nodeName"` is the whole of a key or a value; if it stands there once, and a name follows, that is where
 * the pod is bound, or the pod is bound to none.
 */
export function versionPassed(line: Buffer, follows: (node: NodeName) => boolean): string | undefined {
  const at = line.indexOf(KEY);
  if (at < 0 || line.indexOf(KEY, at + KEY.length) >= 0) return undefined;
  const [, name] = VALUE.exec(line.toString('latin1', at + KEY.length, at + KEY.length + VALUE_BYTES)) ?? [];
  if (name === undefined || follows(nodeName(name))) return undefined;
  return HEAD.exec(line.toString('latin1', 0, HEAD_BYTES))?.[1];
}
