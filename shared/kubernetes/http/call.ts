import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** One call to an API server, in the words of its authorisation (RBAC). */
export interface Call {
  readonly verb: Verb;
  /** With its subresource, as in a Role: `pods`, `pods/status`. */
  readonly resource: string;
  /** What of it, for the reader of an error: a name, or namespace/name. */
  readonly object?: string;
  /** From the server's root; parts already encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** Of the body; absent: `application/json`. */
  readonly contentType?: string;
  /** Limits a successful answer. Absent: a list's, or else an object's. */
  readonly answer?: AnswerKind;
  readonly signal?: AbortSignal;
  /** By our clock. It is sent by then or never. */
  readonly notAfter?: EpochMs;
  /** Asked when its turn has come; gives its `notAfter`. Where it rejects the call is not sent, and rejects with that. */
  readonly allowed?: () => Promise<EpochMs>;
  /** It takes its turn before calls without this: it ends what a look at the node began. */
  readonly inHurry?: true;
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** The HTTP method that the API server takes for a verb. */
export const METHODS: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
};

/** The call in words: `patch pods/status default/web-0`. */
export const callText = (call: Call): string =>
  [call.verb, call.resource, ...(call.object === undefined ? [] : [call.object])].join(' ');

/** A verb on a resource; a subresource stands behind a slash, as in a Role. */
export interface Permission {
  readonly verb: Verb;
  readonly resource: string;
  /** Its API group; absent: the core group. */
  readonly group?: string;
  /** Of one object alone; absent: of all. */
  readonly name?: string;
  /** Absent: in every namespace. */
  readonly namespace?: string;
}

/** Kinds of answers, each with its limits (`ANSWER_BYTES`). */
export type AnswerKind = 'short' | 'refusal' | 'object' | 'list';

/** As whom the API server notes us where we write: it takes the user agent. Marks go by this and the installation's name. */
export const FIELD_MANAGER = 'taintward';
