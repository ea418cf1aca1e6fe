import { awsDeltaDeps, deltaEnvironment } from '#shared/deltas/aws-delta-deps.ts';
import { readEnvironment } from '#shared/environment/read-environment.ts';
import { createHandler } from './handler.ts';

const deps = awsDeltaDeps(readEnvironment(deltaEnvironment, process.env));

/** The entry of the Lambda function on `node-deltas.fifo`. */
export const handler = createHandler(deps);
