import type { RequestOptions } from 'node:https';

/** Parameters with which a request reaches the server and is authenticated. */
export interface RequestAccess
  extends Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'servername'> {
  /** An http or https URL; its path, if any, precedes the path of every call. */
  readonly server: URL;
  /** Authentication and impersonation headers. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** An http or https URL; absent: the environment's proxy. */
  readonly proxy?: URL;
}

/** A server cannot be reached with its access; the message is a clause with the reason and the remedy. */
export class DialError extends Error {
  override readonly name = 'DialError';
}

/** The connection to one cluster's API server. */
export interface Connection {
  /** The server's name in messages: its host and port, or another known name before it is first reached. */
  readonly host: string;
  /**
   * Called before every request, because tokens rotate and addresses change. Rejects with an Error that is one sentence
   * for the operator and contains no secret.
   */
  requestOptions(): Promise<RequestAccess>;
  /** Advice for a call that the server forbids (403), as the end of a sentence; absent: grant these credentials the verb. */
  readonly whenForbidden?: string;
  /** The server rejected (401) the credentials of {@link requestOptions}: cached credentials must be obtained again. */
  forgetCredentials?(): void;
}
