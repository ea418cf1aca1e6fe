import * as z from 'zod';

/** The account of LocalStack. No AWS customer has this account. */
export const LOCALSTACK_ACCOUNT = '000000000000';

/** The replacement for AWS. Absent: AWS. */
export const endpointSchema = z.enum(['localstack'], 'must be localstack, or not set');
export type Endpoint = z.infer<typeof endpointSchema>;

/** Returns the reason for rejecting a LocalStack setting in another account. */
export const notForAccount = (account: string): string =>
  `localstack is for account ${LOCALSTACK_ACCOUNT} alone, and this is account ${account}`;

export const accountOf = (arn: string): string => arn.split(':')[4] ?? '';
