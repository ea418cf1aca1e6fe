import { computed, effect, signal } from '@preact/signals';
import type { LiveEvents, PendingRow, Session } from '#shared/console/api.ts';
import type { ClusterStatus, FleetStatus } from '#shared/operations/look/status.ts';
import { PendingReader } from './pending-reader.ts';
import { get, sentenceOf } from './server.ts';

export type Connection =
  | { readonly state: 'connecting' | 'live' | 'lost' }
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
/** The server's clock, to the second, as far as this page can tell. */
export const clock = signal(Date.now());
/** Time at which the server last sent an event, and could read its clusters. */
const knownAt = signal(Date.now());
/** Time whose state the page shows, because it can't know the current one. `undefined`: it shows the current state. */
export const staleSince = computed(() => {
  const { state } = connection.value;
  const isFirst = state === 'connecting' && status.value === undefined;
  return isFirst || (state === 'live' && trouble.value === '') ? undefined : knownAt.value;
});
/** The time whose state the page shows. Countdowns use it. */
export const now = computed(() => staleSince.value ?? clock.value);

export const clusters = computed<readonly ClusterStatus[]>(() => status.value?.clusters ?? []);

/** Milliseconds by which the server's clock is ahead of this one. */
let ahead = 0;
const tick = () => {
  clock.value = Date.now() + ahead;
};
const setTime = (at: number) => {
  ahead = at - Date.now();
  tick();
  if (trouble.value === '') knownAt.value = at;
};

/** The server sends an event every few seconds. Without any for this long, the connection is lost. */
const SILENT_MS = 12_000;
/** Delay before the page connects again. */
const AGAIN_MS = 2_000;
/** Limit of rows in a page: see `MAX_ROWS` of the server. */
const ALL_ROWS = 20_000;

const rowKey = ([uid, cluster]: PendingRow): string => `${cluster}/${uid}`;

let source: EventSource | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;

/** Connects to the server while the page is visible. */
export function listen(): void {
  setInterval(tick, 1_000);
  void get('GET api/session', {}).then((answer) => {
    session.value = answer;
    setTime(answer.now);
  }, drop);
  document.addEventListener('visibilitychange', attend);
  attend();
}

/** A browser allows six connections per server for all tabs, so a hidden tab must not use one. */
function attend(): void {
  if (connection.value.state === 'over') return;
  if (document.visibilityState === 'hidden') {
    close();
    connection.value = { state: 'connecting' };
  } else connect();
}

function close(): void {
  clearTimeout(silence);
  source?.close();
  source = undefined;
}

/** The browser may take a connection to a frozen server for an open one. */
function expectEvent(): void {
  clearTimeout(silence);
  silence = setTimeout(drop, SILENT_MS);
}

function connect(): void {
  if (source) return;
  const opened = new EventSource('api/live');
  source = opened;
  expectEvent();
  const on = <Name extends keyof LiveEvents>(name: Name, take: (data: LiveEvents[Name]) => void) =>
    opened.addEventListener(name, (event) => {
      expectEvent();
      take(JSON.parse(event.data));
    });
  opened.addEventListener('open', () => {
    connection.value = { state: 'live' };
    reader.reconnected();
  });
  on('time', ({ at }) => setTime(at));
  const endTrouble = () => {
    trouble.value = '';
    knownAt.value = clock.value;
  };
  on('status', (data) => {
    status.value = data;
    endTrouble();
  });
  on('pending', ({ version }) => {
    void reader.announce(version).catch(drop);
    endTrouble();
  });
  on('trouble', ({ error }) => {
    trouble.value = error;
  });
  on('end', ({ reason: why }) => {
    close();
    connection.value = { state: 'over', why };
  });
  opened.addEventListener('error', drop);
}

/** Counts the connection as lost, and connects again unless the session is rejected for good. */
function drop(): void {
  if (connection.value.state === 'over') return;
  close();
  connection.value = { state: 'lost' };
  clearTimeout(retry);
  retry = setTimeout(() => void again(), AGAIN_MS);
}

async function again(): Promise<void> {
  try {
    session.value = await get('GET api/session', {});
    attend();
  } catch (error) {
    if (isRefused(error)) connection.value = { state: 'over', why: sentenceOf(error) };
    else drop();
  }
}

const isRefused = (error: unknown): boolean =>
  error instanceof Error && 'status' in error && (error.status === 401 || error.status === 403);

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
