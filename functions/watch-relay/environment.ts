import * as z from 'zod';
import { deltaQueueVariables, tableVariables } from '#shared/environment/variables.ts';

/** Where Fargate and Kubernetes look for the probes unless told otherwise. */
export const PROBE_PORT = 8080;

/** What the relay reads from its environment. */
export const relayEnvironment = z.object({
  ...tableVariables,
  ...deltaQueueVariables,
  /** Where `/healthz`, `/readyz` and `/metrics` are served. */
  PROBE_HOST: z.string().min(1).default('0.0.0.0'),
  PROBE_PORT: z.coerce.number('must be a port').int().min(0).max(65_535).default(PROBE_PORT),
});
