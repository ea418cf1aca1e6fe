/**
 * Without limits, a call to an endpoint that drops packets would wait indefinitely; so it ends after some 15 s in all.
 */
export const CLIENT_SETTINGS = {
  requestHandler: { connectionTimeout: 2_000, requestTimeout: 5_000, throwOnRequestTimeout: true },
} as const;

/** Settings of every SQS client: the endpoint counts, not the host in a queue's URL. */
export const SQS_SETTINGS = { ...CLIENT_SETTINGS, useQueueUrlAsEndpoint: false } as const;

/** The same settings for calls that wait for messages, for up to 20 s. */
export const SQS_WAITING_SETTINGS = {
  ...SQS_SETTINGS,
  requestHandler: { ...SQS_SETTINGS.requestHandler, requestTimeout: 25_000 },
} as const;
