import type { RequestOptions } from 'node:https';

/** What one request needs so that the server lets it in. */
export interface RequestAccess
  extends Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'servername'> {
  /** An http or https URL; its path, if any, goes before every call's. */
  readonly server: URL;
  /** Authentication and impersonation headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** An http or https URL; absent: as the environment says. */
  readonly proxy?: URL;
}

/** How to reach one cluster's API server. */
export interface Connection {
  /** Names the server in messages: its host and port, or what else is known of it before it is first reached. */
  readonly host: string;
  /**
   * Asked before every request, because tokens rotate and addresses move; cheap while the credentials last. Rejects with an Error
   * whose message is one sentence for the operator and holds no secret.
   */
  requestOptions(): Promise<RequestAccess>;
  /** What to do about a call that the server forbids (403), as the end of a sentence; absent: grant these credentials its verb. */
  readonly whenForbidden?: string;
  /** The server refused (401) what {@link requestOptions} gave: whatever is cached is to be obtained anew. */
  forgetCredentials?(): void;
}
