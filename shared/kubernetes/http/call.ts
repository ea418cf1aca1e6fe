import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** One call to an API server, in terms of its authorization (RBAC). */
export interface Call {
  readonly verb: Verb;
  /** The resource with its subresource, as in a Role: `pods`, `pods/status`. */
  readonly resource: string;
  /** The object, for the reader of an error: a name, or namespace/name. */
  readonly object?: string;
  /** The path from the server's root, with encoded parts. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** Content type of the body; absent: `application/json`. */
  readonly contentType?: string;
  /** Limits a successful response. Absent: the kind is a list's, or else an object's. */
  readonly answer?: AnswerKind;
  readonly signal?: AbortSignal;
  /** By our clock. The call is sent by then, or never. */
  readonly notAfter?: EpochMs;
  /** Called in the call's turn; returns its `notAfter`. If it rejects, the call is not sent, and rejects alike. */
  readonly allowed?: () => Promise<EpochMs>;
  /** The call takes its turn before calls without this: it completes a pass that began with reading a node. */
  readonly inHurry?: true;
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** The API server's HTTP method for each verb. */
export const METHODS: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
};

export const callText = ({ verb, resource, object }: Call): string =>
  resource.startsWith('selfsubject')
    ? 'check permissions'
    : [verb, resource, ...(object === undefined ? [] : [object])].join(' ');

/** A verb on a resource. A subresource follows a slash, as in a Role. */
export interface Permission {
  readonly verb: Verb;
  readonly resource: string;
  /** The resource's API group; absent: the core group. */
  readonly group?: string;
  /** The name of a single object; absent: all objects. */
  readonly name?: string;
  /** Absent: all namespaces. */
  readonly namespace?: string;
}

/** Kinds of answers, each with its limits (`ANSWER_BYTES`). */
export type AnswerKind = 'short' | 'refusal' | 'object' | 'list';

/** The field manager of our writes: the API server uses the user agent. Marks add the installation's name. */
export const FIELD_MANAGER = 'taintward';
