import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';

/** Maximum age of a session, even if it is in use. */
const SESSION_MS = 12 * 3_600_000;
/** Age after which an unopened link becomes invalid. Other users may have found it by then. */
export const LINK_MS = 3_600_000;
/** Maximum number of sessions. A user who opens more has forgotten the first. */
const MAX_SESSIONS = 16;
/** Maximum number of unopened links. The oldest becomes invalid. */
const MAX_LINKS = 16;
const SECRET_BYTES = 24;

export interface Session {
  /**
   * The first part of its paths, and its cookie's path. Browsers send cookies to every port of a host: as the path is
   * secret, other servers of this machine don't receive this one.
   */
  readonly path: string;
  /** Value of the cookie, which authenticates requests. */
  readonly cookie: string;
  /** Token that acts carry in a header. Pages of other sites cannot read it. */
  readonly token: string;
  readonly age: Age;
  /** Aborts when the session ends. */
  readonly ended: AbortSignal;
}

/** The terms of a link, for its reader. */
export const LINK_TERMS = `works once, in one browser, within ${durationText(LINK_MS)}`;

/** Sessions of a console. Each is opened by a link. */
export class Sessions {
  readonly #clock: Clock;
  /** By digest, oldest first. */
  readonly #links = new Map<string, Age>();
  /** By path, oldest first. */
  readonly #sessions = new Map<string, { readonly session: Session; readonly end: AbortController }>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  link(): string {
    const key = secret();
    this.#links.set(digest(key), new Age(this.#clock));
    for (const oldest of [...this.#links.keys()].slice(0, -MAX_LINKS)) this.#links.delete(oldest);
    return key;
  }

  /** Opens a session by a link's key. `undefined`: the key is unknown, used, or too old. */
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

  /** Returns the session of this path if the cookie matches and the session has not ended. */
  find(path: string, cookie: string | undefined): Session | undefined {
    const session = this.#sessions.get(path)?.session;
    if (!session || cookie === undefined || !isSame(cookie, session.cookie)) return undefined;
    if (session.age.atMostMs < SESSION_MS) return session;
    this.#end(path);
    return undefined;
  }

  close(): void {
    this.#links.clear();
    for (const path of [...this.#sessions.keys()]) this.#end(path);
  }

  #end(path: string): void {
    this.#sessions.get(path)?.end.abort();
    this.#sessions.delete(path);
  }
}

/** Reports whether two secrets are equal, in a time that reveals neither. */
export const isSame = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(digest(given)), Buffer.from(digest(expected)));

const secret = (): string => randomBytes(SECRET_BYTES).toString('base64url');

const digest = (text: string): string => createHash('sha256').update(text).digest('base64');
