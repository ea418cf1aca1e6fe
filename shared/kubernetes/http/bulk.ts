/**
 * What deciding never reads is most of an object: managed fields, containers, images, statuses. It is cut out of the JSON
 * before that is parsed, where it stands as the API server writes it. In a JSON text an unescaped `"key":` is a key, never part
 * of a string; so a cut begins and ends at keys, and what it takes away is looked through for keys that are read.
 */

/** From behind `begin` up to `end`; not cut when a key stands there that is read. */
interface Cut {
  readonly begin: Buffer;
  readonly end: Buffer;
  readonly never: readonly Buffer[];
  /** Nor when this key stands before it. */
  readonly notAfter?: Buffer;
}

const cut = (begin: string, end: string, ...never: readonly string[]): Cut => ({
  begin: Buffer.from(begin),
  end: Buffer.from(end),
  never: never.map((key) => Buffer.from(key)),
});

/** Of a pod that terminates it is read who owns what was announced of it. */
const TERMINATING = Buffer.from('"deletionTimestamp":');

const MANAGED_FIELDS = cut(
  '"managedFields":[',
  ']},"spec":{',
  '"uid":',
  '"resourceVersion":',
  '"namespace":',
  '"annotations":',
  '"ownerReferences":',
);

const POD_CUTS: readonly Cut[] = [
  { ...MANAGED_FIELDS, notAfter: TERMINATING },
  // Volumes and containers: what comes before this field in `core/v1.PodSpec`.
  cut('"spec":{', '"dnsPolicy":"', '"nodeName":', '"tolerations":'),
  cut('"containerStatuses":[', '],"qosClass":"', '"conditions":'),
];

const NODE_STATUS = Buffer.from(',"status":{');
const READ_OF_NODES = ['"resourceVersion":', '"managedFields":', '"taints":'].map((key) => Buffer.from(key));

/** An object's JSON without its bulk. `depth`: how many braces close at its end; 2: it is the object of a watch's event. */
export type Trim = (json: Buffer, depth: 1 | 2) => string;

/** A pod without managed fields (unless it terminates), volumes, containers and their statuses. */
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

/** A node without its status. */
export const trimNode: Trim = (json, depth) => {
  const from = json.indexOf(NODE_STATUS);
  const to = json.length - depth;
  if (from < 0 || standsIn(json.subarray(from, to), READ_OF_NODES)) return json.toString();
  return json.toString('utf8', 0, from) + json.toString('utf8', to);
};

const standsIn = (json: Buffer, keys: readonly Buffer[]): boolean => keys.some((key) => json.includes(key));
