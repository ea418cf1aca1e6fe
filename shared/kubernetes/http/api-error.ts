import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { readAs } from '#shared/text/read-as.ts';
import { durationText } from '#shared/time/duration.ts';
import { type Call, callText, METHODS } from './call.ts';
import { DialError } from './connection.ts';
import { NAMESPACE_TERMINATING, type Refusal, refuserOf, UNANSWERED_WRITE } from './eviction-refusal.ts';

const MAX_MESSAGE = 1_400;

/** The failure of a call to an API server. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status; 0: no response came (unreachable, reset, timed out), or none that can be relied on. */
  readonly status: number;
  /** `Status.reason`, for example `Expired`, `Conflict`, `Forbidden`; "": unknown. */
  readonly reason: string;
  /** When to retry: from the `Retry-After` header, or else from `Status.details`. */
  readonly retryAfterSeconds: number | undefined;
  /** The reasons of `Status.details.causes`, for example `ResourceVersionTooLarge`. */
  readonly causes: readonly string[];
  /** The clause of the message with the reason; "": the message has none. */
  readonly why: string;

  constructor(
    message: string,
    status: number,
    reason = '',
    retryAfterSeconds?: number,
    { causes = [], why = '', ...options }: ErrorOptions & Partial<Pick<ApiError, 'causes' | 'why'>> = {},
  ) {
    // Most messages contain text from a server, at least the name of a pod.
    super(escapeForDisplay(message, MAX_MESSAGE), options);
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
    this.causes = causes;
    this.why = why;
  }

  /** No server answered, or none that could: a proxy in its place, or a server that is out of order. */
  get unanswered(): boolean {
    return this.status === 0 || this.status >= 500;
  }
}

/** A call was not sent in time, and will not be sent. */
export class LateCallError extends Error {
  override readonly name = 'LateCallError';
}

/** The cause of a 404 that is not about the object: the server does not serve its kind, or not yet. */
export const UNKNOWN_API = 'UnknownApi';

/** `meta/v1.Status`: a failure in the API server's form. */
const Status = z.object({
  kind: z.literal('Status'),
  message: z.string().default(''),
  reason: z.string().default(''),
  code: z.int().default(0),
  details: z
    .object({
      causes: z
        .array(z.object({ reason: z.string().default(''), message: z.string().default('') }))
        .catch([]),
      retryAfterSeconds: z.int().nonnegative().optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
});
type Status = z.infer<typeof Status>;

/** Longer texts of a server are truncated: validation errors may repeat whole objects. */
const MAX_SERVER_TEXT = 500;
/** Maximum number of causes: a rejection has one for each wrong field, or budget. */
const MAX_CAUSES = 10;

const UNTRUSTED = 'its TLS certificate is not from the expected authority; give its CA certificate';
const UNFIT = 'its TLS certificate, or one of its authorities, is not fit for a server; renew it';
const NOT_TLS = 'it does not speak TLS there; check http or https in the server address';
const CLIENT_REJECTED = 'it rejected the client certificate; give a current one that its CA signed';

const UNREACHABLE: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'the connection was refused; check that the server runs and its address is right'],
  [/^(ECONNRESET|EPIPE|ERR_HTTP2_(GOAWAY|SESSION|STREAM)_|ERR_STREAM_)/, 'the connection was reset'],
  [/^ERR_HALF_SENT$/, 'it read too slowly to get the whole request in time; check its load and the network'],
  [/^E(HOST|NET)UNREACH$/, 'there is no route to it; check the network'],
  [/^ETIMEDOUT$/, 'the connection timed out; check the network and firewalls'],
  [/^ENOTFOUND$/, 'its name does not resolve; check the server address and DNS'],
  [/^ETIMEOUT$/, 'its DNS server does not answer; check the network and DNS'],
  [/^EAI_AGAIN$/, 'its name does not resolve for now; check DNS'],
  [/^(EAI_FAIL|ESERVFAIL|EREFUSED)$/, 'its DNS server cannot resolve its name; check its address and DNS'],
  [/^CERT_HAS_EXPIRED$/, 'its TLS certificate has expired; renew it'],
  [
    /^CERT_NOT_YET_VALID$/,
    'its TLS certificate is not valid yet; check the clocks of this machine and its issuer',
  ],
  [/^CERT_REVOKED$/, 'its TLS certificate was revoked; renew it'],
  [/ALTNAME|HOSTNAME_MISMATCH/, 'its TLS certificate is for another name; address it by one it holds'],
  [/^CERT_(UNTRUSTED|REJECTED|SIGNATURE_FAILURE)|SELF_SIGNED_|GET_ISSUER_|VERIFY_LEAF_/, UNTRUSTED],
  [/^INVALID_(CA|PURPOSE)|PATH_LENGTH_|CHAIN_TOO_LONG|IN_CERT_NOT_|^UNABLE_TO_DEC|^UNSPECIFIED$/, UNFIT],
  [/^(EPROTO|ERR_SSL_(HTTP_REQUEST|PACKET_LENGTH_TOO_LONG|WRONG_VERSION_NUMBER))$/, NOT_TLS],
  [/^ERR_SSL_.*ALERT_.*(CERT|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR)/, CLIENT_REJECTED],
  [/^ERR_OSSL_BAD_DECRYPT$/, 'the client key is encrypted; give it without a passphrase'],
  [/KEY_VALUES_MISMATCH/, 'the client certificate and its key do not belong together; replace both'],
  [/^ERR_OSSL_PEM_/, 'the client certificate or its key is not in PEM form; replace it'],
  [/^ERR_(OSSL_|SSL_(EE|CA)_)/, 'the client certificate or its key cannot be used; replace it'],
  [/^ERR_SSL_/, 'the TLS handshake failed; check TLS versions, tls-server-name, and the client certificate'],
];

const proxyMayAnswer = (status: number): boolean => status >= 500 || [401, 403, 429].includes(status);

/** Returns the error of a missing or interrupted response; `error` as for {@link reasonOf}. */
export function unreachable(call: Call, host: string, error: unknown): ApiError {
  return failure(call, host, reasonOf(error), error);
}

/** Returns the clause that explains an error of the network, of TLS, or of certificates, with its remedy. */
export function reasonOf(error: unknown): string {
  if (error instanceof DialError) return error.message;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const why = UNREACHABLE.find(([codes]) => codes.test(code))?.[1];
  return why === undefined ? code || 'the connection broke' : `${why} (${code})`;
}

export function failure(call: Call, host: string, why: string, cause?: unknown): ApiError {
  return new ApiError(`Cannot ${callText(call)} at ${host}: ${why}.`, 0, '', undefined, { cause, why });
}

/** Returns the error of a call without a complete response within `ms`, on a connection that is alive as far as known. */
export function unansweredInTime(call: Call, host: string, ms: number, cause: unknown): ApiError {
  const why = `there was no complete answer within ${durationText(ms)}`;
  if (METHODS[call.verb] === 'GET') return failure(call, host, why, cause);
  const text = `Cannot ${callText(call)} at ${host}: ${why}; an admission webhook may have kept it waiting.`;
  return new ApiError(text, 0, '', undefined, { cause, causes: [UNANSWERED_WRITE] });
}

export const late = (call: Call, host: string): LateCallError =>
  new LateCallError(`Did not ${callText(call)} at ${host}: it could not be sent in time.`);

/** `text`: the body; `secrets`: texts that the message must not contain; `whenForbidden`: as in `Connection`. */
export function refusal(
  call: Call,
  host: string,
  { status: httpStatus, headers }: { readonly status: number; readonly headers: IncomingHttpHeaders },
  text: string,
  secrets: readonly string[],
  whenForbidden?: string,
): ApiError {
  const status = parseStatus(text) ?? unknownGroup(call, httpStatus, text);
  // Only the API server itself may report an object as gone or changed (404, 409). A page from elsewhere proves
  // nothing about the object.
  if (status === undefined && !proxyMayAnswer(httpStatus)) {
    return failure(
      call,
      host,
      `its answer ${httpStatus} is not a Kubernetes API server's; check the server address`,
    );
  }
  return refused(call, host, { ...status, code: httpStatus }, secrets, {
    retryAfter: retryAfterSeconds(headers),
    whenForbidden,
  });
}

/** Returns the error in an `ERROR` event of a watch; see {@link refusal}. */
export function watchError(call: Call, host: string, object: unknown, secrets: readonly string[]): ApiError {
  const { data: status } = readAs(Status, object);
  if (status === undefined) return failure(call, host, 'the watch reported an error without a status');
  return refused(call, host, status, secrets);
}

function refused(
  call: Call,
  host: string,
  { code, reason: given = '', message = '', details }: Partial<Status> & Pick<Status, 'code'>,
  secrets: readonly string[],
  {
    retryAfter = details?.retryAfterSeconds,
    whenForbidden,
  }: { readonly retryAfter?: number | undefined; readonly whenForbidden?: string | undefined } = {},
): ApiError {
  const reason = serverText(given, secrets);
  const words = serverText(message, secrets);
  const causes = details?.causes ?? [];
  const causeReasons = causes.map((cause) => cause.reason);
  // The message usually repeats the causes; that of a disruption budget does not.
  const more = causes
    .slice(0, MAX_CAUSES)
    .map((cause) => serverText(cause.message, secrets))
    .filter((text) => !words.includes(text));
  const parts = [
    `${code}${reason === '' ? '' : ` ${reason}`}`,
    ...(words === '' || words === reason ? [] : [words]),
    ...more,
    ...fix(call, { status: code, causes: causeReasons, message: words }, whenForbidden),
  ];
  const text = `Cannot ${callText(call)} at ${host}: ${parts.join('; ')}.`;
  return new ApiError(text, code, reason, retryAfter, { causes: causeReasons });
}

function fix(call: Call, refusal: Refusal, whenForbidden?: string): readonly string[] {
  const { status, causes, message } = refusal;
  // If a budget or admission blocks the pod, no permission is missing.
  if (['budget', 'admission'].includes(refuserOf(refusal))) return [];
  if (status === 401) return ['the credentials were rejected (an expired token?): renew them'];
  // A quota rejects with 403, too.
  const isOther = causes.includes(NAMESPACE_TERMINATING) || message.includes('exceeded quota: ');
  if (status !== 403 || isOther) return [];
  return [whenForbidden ?? `grant these credentials the verb ${call.verb} on ${call.resource}`];
}

/** An API group that the server does not serve has no `Status`: Go's web server responds. */
function unknownGroup(call: Call, httpStatus: number, text: string): Status | undefined {
  const isUnknown =
    httpStatus === 404 && call.path.startsWith('/apis/') && text.trim() === '404 page not found';
  if (!isUnknown) return undefined;
  const details = { causes: [{ reason: UNKNOWN_API, message: '' }], retryAfterSeconds: undefined };
  return { kind: 'Status', message: 'it serves no such API', reason: 'NotFound', code: httpStatus, details };
}

function parseStatus(text: string): Status | undefined {
  try {
    return Status.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Returns a server's message as part of a sentence, without `secrets`: the server, or a proxy, may repeat the request. */
export const serverText = (words: string, secrets: readonly string[] = []): string =>
  secrets
    .reduce((text, secret) => text.replaceAll(secret, '…'), words)
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/\.$/, '')
    .slice(0, MAX_SERVER_TEXT);

/** Some proxies send a date instead, by the clock that also dated the response. */
function retryAfterSeconds({
  'retry-after': after = '',
  date = '',
}: IncomingHttpHeaders): number | undefined {
  if (/^\d{1,9}$/.test(after)) return Number(after);
  const ms = Date.parse(after) - (Date.parse(date) || Date.now());
  return after.endsWith(' GMT') && !Number.isNaN(ms) ? Math.max(0, Math.ceil(ms / 1000)) : undefined;
}
