import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';

/** A session ends after this time, whatever is done in it. */
const SESSION_MS = 12 * 3_600_000;
/** A link that nobody has opened by then opens nothing: it may have been left where others look. */
const LINK_MS = 3_600_000;
/** Somebody who opens more has forgotten the first. */
const MAX_SESSIONS = 16;
/** Links that were made and not opened: the oldest counts no longer. */
const MAX_LINKS = 16;
const SECRET_BYTES = 24;

/** One browser that has opened a link. */
export interface Session {
  /**
   * The first part of all its paths, and the path of its cookie. Cookies are sent to every port of a host: so that no
   * other server on this machine is sent this one, its path is a secret, too.
   */
  readonly path: string;
  /** What its cookie holds: it shows who asks. */
  readonly cookie: string;
  /** What acts carry in a header: no page of somebody else can know it. */
  readonly token: string;
  readonly age: Age;
  /** Aborts when it ends. */
  readonly ended: AbortSignal;
}

/** The sessions of a console. Each is begun by a link, which counts once. */
export class Sessions {
  readonly #clock: Clock;
  /** By digest, the oldest first. */
  readonly #links = new Map<string, Age>();
  /** By path, the oldest first. */
  readonly #sessions = new Map<string, { readonly session: Session; readonly end: AbortController }>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** The key of a new link. */
  link(): string {
    const key = secret();
    this.#links.set(digest(key), new Age(this.#clock));
    for (const oldest of [...this.#links.keys()].slice(0, -MAX_LINKS)) this.#links.delete(oldest);
    return key;
  }

  /** Begins a session by a link's key; `undefined`: it was never made, has been opened, or is too old. */
  open(key: string): Session | undefined {
    const link = digest(key);
    const age = this.#links.get(link);
    this.#links.delete(link);
    if (!age || age.atMostMs >= LINK_MS) return undefined;
    const end = new AbortController();
    const session: Session = {
      path: secret(),
      cookie: secret(),
      token: secret(),
      age: new Age(this.#clock),
      ended: end.signal,
    };
    this.#sessions.set(session.path, { session, end });
    for (const path of [...this.#sessions.keys()].slice(0, -MAX_SESSIONS)) this.#end(path);
    return session;
  }

  /** The session of these paths, when the cookie is its own and it has not ended. */
  find(path: string, cookie: string | undefined): Session | undefined {
    const session = this.#sessions.get(path)?.session;
    if (!session || cookie === undefined || !isSame(cookie, session.cookie)) return undefined;
    if (session.age.atMostMs < SESSION_MS) return session;
    this.#end(path);
    return undefined;
  }

  /** Ends all of them. */
  close(): void {
    this.#links.clear();
    for (const path of [...this.#sessions.keys()]) this.#end(path);
  }

  #end(path: string): void {
    this.#sessions.get(path)?.end.abort();
    this.#sessions.delete(path);
  }
}

/** Whether two secrets are the same, in a time that tells nothing of either. */
export const isSame = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(digest(given)), Buffer.from(digest(expected)));

const secret = (): string => randomBytes(SECRET_BYTES).toString('base64url');

const digest = (text: string): string => createHash('sha256').update(text).digest('base64');
