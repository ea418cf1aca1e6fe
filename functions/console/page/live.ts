import { computed, effect, signal } from '@preact/signals';
import type { LiveEvents, PendingRow, Session } from '#shared/console/api.ts';
import type { ClusterStatus, FleetStatus } from '#shared/operations/look/status.ts';
import { PendingReader } from './pending-reader.ts';
import { get, sentenceOf } from './server.ts';

/** State of the connection to the server. */
export type Connection =
  | { readonly state: 'connecting' | 'live' }
  | { readonly state: 'lost'; readonly since: number }
  /** The server ended the session. */
  | { readonly state: 'over'; readonly why: string };

export const connection = signal<Connection>({ state: 'connecting' });
export const session = signal<Session | undefined>(undefined);
export const status = signal<FleetStatus | undefined>(undefined);
/** All pending evictions, by cluster and UID. `undefined`: not known yet. */
export const pending = signal<ReadonlyMap<string, PendingRow> | undefined>(undefined);
/** Number of all pending evictions, which may exceed the page's limit. */
export const pendingTotal = signal(0);
/** Increases with every change of the pending evictions. Other answers may have changed, too. */
export const pendingVersion = signal(0);
/** Error of the server as a sentence. The shown data may be outdated. */
export const trouble = signal('');
/** The server's clock, to the second. Countdowns use it. */
export const now = signal(Date.now());

export const clusters = computed<readonly ClusterStatus[]>(() => status.value?.clusters ?? []);

/** Milliseconds by which the server's clock is ahead of this one. */
let ahead = 0;
const tick = () => {
  now.value = Date.now() + ahead;
};
const setTime = (at: number) => {
  ahead = at - Date.now();
  tick();
};

/** Delay before the page reconnects after the browser gave up. */
const AGAIN_MS = 2_000;
/** Limit of rows in a page: see `MAX_ROWS` of the server. */
const ALL_ROWS = 20_000;

const rowKey = ([uid, cluster]: PendingRow): string => `${cluster}/${uid}`;

let source: EventSource | undefined;

/** Connects to the server while the page is visible. */
export function listen(): void {
  setInterval(tick, 1_000);
  void get('GET api/session', {}).then((answer) => {
    session.value = answer;
    setTime(answer.now);
  }, lost);
  document.addEventListener('visibilitychange', attend);
  attend();
}

/** A browser allows six connections per server for all tabs, so a hidden tab must not use one. */
function attend(): void {
  if (connection.value.state === 'over') return;
  if (document.visibilityState === 'hidden') {
    source?.close();
    source = undefined;
  } else connect();
}

function connect(): void {
  if (source) return;
  const opened = new EventSource('api/live');
  source = opened;
  const on = <Name extends keyof LiveEvents>(name: Name, take: (data: LiveEvents[Name]) => void) =>
    opened.addEventListener(name, (event) => take(JSON.parse(event.data)));
  opened.addEventListener('open', () => {
    connection.value = { state: 'live' };
    reader.reconnected();
  });
  on('status', (data) => {
    setTime(data.at);
    status.value = data;
    trouble.value = '';
  });
  on('pending', ({ version, at }) => {
    setTime(at);
    void reader.announce(version).catch(lost);
    trouble.value = '';
  });
  on('trouble', ({ error }) => {
    trouble.value = error;
  });
  on('end', ({ reason: why }) => {
    opened.close();
    connection.value = { state: 'over', why };
  });
  opened.addEventListener('error', () => {
    lost();
    if (opened.readyState !== EventSource.CLOSED) return;
    source = undefined;
    // The browser doesn't reconnect after an error response. If the session is rejected for good, the page
    // shows the reason.
    setTimeout(() => void again(), AGAIN_MS);
  });
}

async function again(): Promise<void> {
  try {
    session.value = await get('GET api/session', {});
    attend();
  } catch (error) {
    if (isRefused(error)) connection.value = { state: 'over', why: sentenceOf(error) };
    else setTimeout(() => void again(), AGAIN_MS);
  }
}

const isRefused = (error: unknown): boolean =>
  error instanceof Error && 'status' in error && (error.status === 401 || error.status === 403);

function lost(): void {
  const { state } = connection.value;
  if (state === 'connecting' || state === 'live') connection.value = { state: 'lost', since: Date.now() };
}

const reader = new PendingReader(
  () => get('GET api/pending', { limit: ALL_ROWS }),
  ({ rows, total, version }) => {
    pending.value = new Map(rows.map((row) => [rowKey(row), row]));
    pendingTotal.value = total;
    pendingVersion.value = version;
  },
);

const ASK_EVERY_MS = 1_500;

/** Calls `ask` now, and when evictions or status change, at most as often as people can read. Returns what ends it. */
export function whenever(ask: () => void): () => void {
  let waits: ReturnType<typeof setTimeout> | undefined;
  let requestedAt = 0;
  const end = effect(() => {
    void pendingVersion.value;
    void status.value;
    waits ??= setTimeout(
      () => {
        waits = undefined;
        requestedAt = Date.now();
        ask();
      },
      Math.max(0, requestedAt + ASK_EVERY_MS - Date.now()),
    );
  });
  return () => {
    end();
    clearTimeout(waits);
  };
}
