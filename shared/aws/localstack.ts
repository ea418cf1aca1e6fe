import * as z from 'zod';

/** The account of LocalStack, which is nobody's at AWS. */
export const LOCALSTACK_ACCOUNT = '000000000000';

/** What does not speak to AWS; absent: AWS. */
export const endpointSchema = z.enum(['localstack'], 'must be localstack, or not set');
export type Endpoint = z.infer<typeof endpointSchema>;

/** Why a setting for LocalStack is refused in another account. */
export const notForAccount = (account: string): string =>
  `localstack is for account ${LOCALSTACK_ACCOUNT} alone, and this is account ${account}`;

/** The account that an ARN names. */
export const accountOf = (arn: string): string => arn.split(':')[4] ?? '';
