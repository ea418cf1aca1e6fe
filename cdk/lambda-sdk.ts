/**
 * Replaces two parts of the AWS SDK in the bundles of functions, a fifth of their text. The default credential provider chain loads
 * clients of STS and SSO, but Lambda sets a function's credentials in environment variables. No function calls an operation with an
 * event stream.
 */
export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';
