/**
 * Most of an object is not needed for decisions: managed fields, containers, images, statuses. These parts are cut
 * out of the JSON before it is parsed, where the API server usually writes them. In a JSON text, an unescaped
 * `"key":` is a key, never part of a string. So a cut begins and ends at keys, and the part is searched for keys that
 * are needed.
 */

/** A part of the JSON from after `begin` up to `end`. The part is not cut if it contains one of the keys `never`. */
interface Cut {
  readonly begin: string;
  readonly end: string;
  readonly never: RegExp;
  /** The part is not cut either if this key precedes it. */
  readonly notAfter?: string;
}

const POD_CUTS: readonly Cut[] = [
  {
    begin: '"managedFields":[',
    end: ']},"spec":{',
    never: /"(?:uid|resourceVersion|namespace|annotations|ownerReferences)":/,
    // The managed fields of a terminating pod are needed: they name the owner of its announcement.
    notAfter: '"deletionTimestamp":',
  },
  // Volumes and containers: the fields before this one in `core/v1.PodSpec`.
  { begin: '"spec":{', end: '"dnsPolicy":"', never: /"(?:nodeName|tolerations|priorityClassName)":/ },
  { begin: '"containerStatuses":[', end: '],"qosClass":"', never: /"conditions":/ },
];

const NODE_STATUS = ',"status":{';
const READ_OF_NODES = /"(?:resourceVersion|managedFields|taints)":/;

/** Returns an object's JSON without its bulk. `depth`: how many braces close at its end; 2: the object of a watch event. */
export type Trim = (json: Buffer, depth: 1 | 2) => string;

/** Trims a pod: without managed fields (unless it is terminating), volumes, containers, and their statuses. */
export const trimPod: Trim = (json) => {
  const bytes = bytesOf(json);
  let text = '';
  let kept = 0;
  for (const { begin, end, never, notAfter } of POD_CUTS) {
    const at = bytes.indexOf(begin, kept);
    if (notAfter && bytes.slice(kept, Math.max(kept, at)).includes(notAfter)) continue;
    const from = at + begin.length;
    const to = at < 0 ? -1 : bytes.indexOf(end, from);
    if (to < 0 || never.test(bytes.slice(from, to))) continue;
    text += json.toString('utf8', kept, from);
    kept = to;
  }
  return text + json.toString('utf8', kept);
};

/** Trims a node: without its status. */
export const trimNode: Trim = (json, depth) => {
  const bytes = bytesOf(json);
  const from = bytes.indexOf(NODE_STATUS);
  const to = json.length - depth;
  if (from < 0 || READ_OF_NODES.test(bytes.slice(from, to))) return json.toString();
  return json.toString('utf8', 0, from) + json.toString('utf8', to);
};

/** Returns a character for each byte: one search for several keys takes half the time of a search of bytes for each. */
const bytesOf = (json: Buffer): string => json.toString('latin1');
