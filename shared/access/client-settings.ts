/** Without limits, a call to an endpoint that drops packets would wait indefinitely. */
const limitedTo = (requestTimeout: number) =>
  ({
    connectionTimeout: 2_000,
    requestTimeout,
    throwOnRequestTimeout: true,
    // Of a response that has begun. Below 6 s, the SDK would also close idle connections after that time.
    socketTimeout: requestTimeout + 1_000,
  }) as const;

/** With its attempts, a call ends after some 20 s. */
export const CLIENT_SETTINGS = { requestHandler: limitedTo(5_000) } as const;

/** Settings of every SQS client: the endpoint counts, not the host in a queue's URL. */
export const SQS_SETTINGS = { ...CLIENT_SETTINGS, useQueueUrlAsEndpoint: false } as const;

/** The same settings for calls that wait for messages, for up to 10 s. */
export const SQS_WAITING_SETTINGS = { ...SQS_SETTINGS, requestHandler: limitedTo(15_000) } as const;

/** Settings for invocations of `evict`, which responds within its own timeout: it waits for the API server. */
export const INVOCATION_SETTINGS = { requestHandler: limitedTo(60_000), maxAttempts: 1 } as const;
