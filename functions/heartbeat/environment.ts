import * as z from 'zod';
import { metricVariables, tableVariables } from '#shared/environment/variables.ts';

/** What `heartbeat` reads from its environment. */
export const heartbeatEnvironment = z.object({ ...tableVariables, ...metricVariables });
