import type { IncomingMessage as Request, ServerResponse as Response } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { SyntheticCluster } from './cluster.ts';
import type { Change, Collection } from './collection.ts';
import { GzipStream } from './template.ts';

/** The faults of a cluster's API server; none when empty. */
export interface Faults {
  /** The share of requests that is rejected. */
  readonly refuse?: {
    readonly share: number;
    readonly status: number;
    readonly retryAfterSeconds?: number;
  };
  /**
   * `endless-line`: watches send bytes without a newline as fast as they are read. `silent`: no request is answered.
   */
  readonly speech?: 'endless-line' | 'silent';
  /** Rejects streaming lists, as servers without them do. */
  readonly noStreamingLists?: boolean;
}

/** The number of requests by kind, since the counts were last read. */
export type Counts = Record<string, number>;

const BOOKMARK_MS = 60_000;
/** The number of objects in one write. */
const BATCH = 50;
/** A watch that leaves this many bytes unread is ended. */
const UNREAD_BYTES = 512 * 2 ** 20;
/** The unread bytes of a watch in a storm, which sends as fast as the watch reads. */
const UNREAD_IN_STORM = 2 ** 20;
const JUNK = Buffer.alloc(256 * 1024, 'a');
const API_PATH = /^\/api\/v1\/(nodes|pods)$/;
const SPEC_NODE_NAME = /^spec\.nodeName=(.+)$/;

type AnyCollection = Pick<Collection<never>, 'object' | 'added' | 'since' | 'listen'> & {
  readonly kind: Pick<Collection<never>['kind'], 'name' | 'places'>;
};

/** Lists and watches of one cluster, as an API server answers them from its cache. */
export class SyntheticApi {
  readonly cluster: SyntheticCluster;
  faults: Faults = {};
  counts: Counts = {};
  readonly #size: { readonly nodes: number };
  readonly #watches = new Set<Response>();

  constructor(cluster: SyntheticCluster, size: { readonly nodes: number }) {
    this.cluster = cluster;
    this.#size = size;
  }

  /** Answers a request for `path`, which follows the cluster's part of the URL. */
  async answer(path: string, query: URLSearchParams, request: Request, response: Response): Promise<void> {
    response.once('close', () => gone.add(response));
    const resource = API_PATH.exec(path)?.[1];
    if (resource === undefined) return refuse(response, 404, 'NotFound');
    const node = this.#requestedNode(query);
    const watching = ['1', 'true'].includes(query.get('watch') ?? '');
    this.#count(`${resource}${node === undefined ? '' : ' of a node'} ${watching ? 'watch' : 'list'}`);
    const { refuse: refusal, speech } = this.faults;
    if (speech === 'silent') return;
    if (refusal !== undefined && Math.random() < refusal.share) {
      this.#count('refused');
      return refuse(response, refusal.status, 'TooManyRequests', refusal.retryAfterSeconds);
    }
    const collection: AnyCollection = resource === 'nodes' ? this.cluster.nodes : this.cluster.pods;
    await (watching
      ? this.#watch(collection, node, query, response)
      : this.#list(collection, node, query, request, response));
  }

  /** Ends all watches abruptly. */
  cutWatches(): void {
    for (const watch of this.#watches) watch.destroy();
  }

  /** Applies the faults to open watches. */
  infect(): void {
    if (this.faults.speech === 'endless-line') for (const watch of this.#watches) void babble(watch);
  }

  /** Resolves when no watch has more than {@link UNREAD_IN_STORM} bytes left to read. */
  async caughtUp(): Promise<void> {
    do await delay(1);
    while ([...this.#watches].some(({ writableLength }) => writableLength > UNREAD_IN_STORM));
  }

  /** Returns the node in the field selector; `-1`: an unknown node. */
  #requestedNode(query: URLSearchParams): number | undefined {
    const name = SPEC_NODE_NAME.exec(query.get('fieldSelector') ?? '')?.[1];
    return name === undefined ? undefined : (this.cluster.nodeNumber(name) ?? -1);
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  async #list(
    collection: AnyCollection,
    node: number | undefined,
    query: URLSearchParams,
    request: Request,
    response: Response,
  ): Promise<void> {
    const { kind } = collection;
    const requested = Number(query.get('resourceVersion') ?? 0);
    if (requested > this.cluster.version) return refuseTooLarge(response);
    const token = /^(\d+)\.(\d+)$/.exec(query.get('continue') ?? '');
    const version = token ? Number(token[1]) : this.cluster.version;
    const from = token ? Number(token[2]) : 0;
    const [first, step] = node === undefined ? [from, 1] : [node + from * this.#size.nodes, this.#size.nodes];
    const places = node === -1 ? 0 : Math.ceil((kind.places - first) / step);
    // A list from the cache ignores the limit.
    const limited = query.get('resourceVersion') !== '0' && query.has('limit');
    const count = limited ? Math.min(places, Number(query.get('limit')) || places) : places;
    const rest = places - count;
    const metadata = {
      resourceVersion: String(version),
      ...(rest > 0 ? { continue: `${version}.${from + count}`, remainingItemCount: rest } : {}),
    };
    const head = `{"kind":"${kind.name}List","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[`;
    const gzip = String(request.headers['accept-encoding']).includes('gzip') ? new GzipStream() : undefined;
    response.writeHead(200, {
      'content-type': 'application/json',
      ...(gzip ? { 'content-encoding': 'gzip' } : {}),
    });
    let pending: Buffer[] = gzip ? [gzip.head, gzip.plain(head)] : [Buffer.from(head)];
    let separator = '';
    for (let index = 0; index < count; index += 1) {
      const made = collection.object(first + index * step);
      if (made === undefined) continue;
      const [template, values] = made;
      const text = template.text(values);
      if (gzip) {
        if (separator) pending.push(gzip.plain(separator));
        gzip.count(text);
        pending.push(...template.blocks(values));
      } else {
        pending.push(Buffer.from(separator + text, 'latin1'));
      }
      separator = ',';
      if (index % BATCH === BATCH - 1) {
        if (!(await written(response, Buffer.concat(pending)))) return;
        pending = [];
      }
    }
    pending.push(...(gzip ? [gzip.plain(']}'), gzip.tail()] : [Buffer.from(']}')]));
    response.end(Buffer.concat(pending));
  }

  async #watch(
    collection: AnyCollection,
    node: number | undefined,
    query: URLSearchParams,
    response: Response,
  ): Promise<void> {
    const initial = query.get('sendInitialEvents') === 'true';
    if (initial && this.faults.noStreamingLists) return refuse(response, 422, 'Invalid');
    const requested = query.get('resourceVersion') ?? '';
    if (Number(requested) > this.cluster.version && initial) return refuseTooLarge(response);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    this.#watches.add(response);
    const end = setTimeout(() => response.end(), Number(query.get('timeoutSeconds') ?? 1800) * 1000);
    const bookmarks = setInterval(() => {
      if (this.faults.speech === undefined) response.write(this.#bookmark(collection, {}));
    }, BOOKMARK_MS);
    response.once('close', () => {
      this.#watches.delete(response);
      clearTimeout(end);
      clearInterval(bookmarks);
    });
    if (this.faults.speech === 'endless-line') return babble(response);

    const fromNow = initial || requested === '' || requested === '0';
    const from = fromNow ? this.cluster.version : Number(requested);
    if (fromNow) {
      for (let place = 0; place < collection.kind.places; place += BATCH) {
        const lines: Buffer[] = [];
        for (let next = place; next < Math.min(place + BATCH, collection.kind.places); next += 1) {
          if (node !== undefined && next % this.#size.nodes !== node) continue;
          const line = collection.added(next);
          if (line) lines.push(line);
        }
        if (lines.length > 0 && !(await written(response, Buffer.concat(lines)))) return;
      }
    }
    const missed = collection.since(from, node);
    if (missed === undefined) {
      const status = { kind: 'Status', status: 'Failure', reason: 'Expired', code: 410 };
      const message = `too old resource version: ${from}`;
      response.end(`${JSON.stringify({ type: 'ERROR', object: { ...status, message } })}\n`);
      return;
    }
    const send = (change: Change): void => {
      if (this.faults.speech !== undefined || gone.has(response)) return;
      if (response.writableLength > UNREAD_BYTES) response.destroy();
      else response.write(change.line());
    };
    for (const change of missed) send(change);
    if (initial) {
      response.write(this.#bookmark(collection, { annotations: { 'k8s.io/initial-events-end': 'true' } }));
    }
    response.once('close', collection.listen(send, node));
  }

  #bookmark({ kind }: AnyCollection, metadata: object): string {
    const object = {
      kind: kind.name,
      apiVersion: 'v1',
      metadata: { resourceVersion: String(this.cluster.version), ...metadata },
    };
    return `${JSON.stringify({ type: 'BOOKMARK', object })}\n`;
  }
}

/** Responses whose clients have closed them; HTTP/2 responses do not report it by themselves. */
const gone = new WeakSet<Response>();

/** Writes bytes and waits until the client reads on; false: the client has closed the response. */
async function written(response: Response, bytes: Buffer): Promise<boolean> {
  if (gone.has(response)) return false;
  if (!response.write(bytes)) {
    await new Promise<void>((resolve) => {
      const go = () => {
        response.off('drain', go);
        response.off('close', go);
        resolve();
      };
      response.once('drain', go);
      response.once('close', go);
    });
  }
  return !gone.has(response);
}

/** Sends bytes without a newline as fast as they are read. */
async function babble(response: Response): Promise<void> {
  while (await written(response, JUNK));
}

/** Answers with a Status, as the API server rejects requests. */
export function refuse(response: Response, code: number, reason: string, retryAfterSeconds?: number): void {
  response
    .writeHead(code, {
      'content-type': 'application/json',
      ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    })
    .end(
      JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message: reason, code }),
    );
}

function refuseTooLarge(response: Response): void {
  const cause = { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' };
  const details = { causes: [cause], retryAfterSeconds: 1 };
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Timeout', code: 504 };
  response
    .writeHead(504, { 'content-type': 'application/json', 'retry-after': '1' })
    .end(JSON.stringify({ ...status, message: cause.message, details }));
}
