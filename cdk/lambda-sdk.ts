/**
 * Replaces parts of the SDK in the bundles of functions, a fifth of their text. Lambda sets a function's credentials in its
 * environment, so the other providers of the default chain, with clients of STS and SSO, are never asked. No call has an event
 * stream.
 */
export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';
