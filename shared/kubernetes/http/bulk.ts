/**
 * Most of an object is not needed for decisions: managed fields, containers, images, statuses. These parts are cut
 * out of the JSON before it is parsed, where the API server usually writes them. In a JSON text, an unescaped
 * `"key":` is a key, never part of a string. So a cut begins and ends at keys, and the part is searched for keys that
 * are needed.
 */

/** A part of the JSON from after `begin` up to `end`. The part is not cut if it contains one of the texts `never`. */
interface Cut {
  readonly begin: Buffer;
  readonly end: Buffer;
  readonly never: readonly Buffer[];
  /** The part is not cut either if this key precedes it. */
  readonly notAfter?: Buffer;
}

const cut = (begin: string, end: string, ...never: readonly string[]): Cut => ({
  begin: Buffer.from(begin),
  end: Buffer.from(end),
  never: never.map((key) => Buffer.from(key)),
});

/** The managed fields of a terminating pod are needed: they name the owner of its announcement. */
const TERMINATING = Buffer.from('"deletionTimestamp":');

/** Without a closing bracket, the part is the array itself: no search for the keys of other fields is needed. */
const MANAGED_FIELDS = cut('"managedFields":[', ']},"spec":{', ']');

const POD_CUTS: readonly Cut[] = [
  { ...MANAGED_FIELDS, notAfter: TERMINATING },
  // Volumes and containers: the fields before this one in `core/v1.PodSpec`.
  cut('"spec":{', '"dnsPolicy":"', '"nodeName":', '"tolerations":', '"priorityClassName":'),
  cut('"containerStatuses":[', '],"qosClass":"', '"conditions":'),
];

const NODE_STATUS = Buffer.from(',"status":{');
const READ_OF_NODES = ['"resourceVersion":', '"managedFields":', '"taints":'].map((key) => Buffer.from(key));

/** Returns an object's JSON without its bulk. `depth`: how many braces close at its end; 2: the object of a watch event. */
export type Trim = (json: Buffer, depth: 1 | 2) => string;

/** Trims a pod: without managed fields (unless it is terminating), volumes, containers, and their statuses. */
export const trimPod: Trim = (json) => {
  let text = '';
  let kept = 0;
  for (const { begin, end, never, notAfter } of POD_CUTS) {
    const at = json.indexOf(begin, kept);
    if (notAfter && json.subarray(kept, Math.max(kept, at)).includes(notAfter)) continue;
    const from = at + begin.length;
    const to = at < 0 ? -1 : json.indexOf(end, from);
    if (to < 0 || standsIn(json.subarray(from, to), never)) continue;
    text += json.toString('utf8', kept, from);
    kept = to;
  }
  return text + json.toString('utf8', kept);
};

/** Trims a node: without its status. */
export const trimNode: Trim = (json, depth) => {
  const from = json.indexOf(NODE_STATUS);
  const to = json.length - depth;
  if (from < 0 || standsIn(json.subarray(from, to), READ_OF_NODES)) return json.toString();
  return json.toString('utf8', 0, from) + json.toString('utf8', to);
};

const standsIn = (json: Buffer, keys: readonly Buffer[]): boolean => keys.some((key) => json.includes(key));
