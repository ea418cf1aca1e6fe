import * as z from 'zod';
import {
  deadLetterVariables,
  dueQueueVariables,
  matchingVariables,
  metricVariables,
  sourceVariables,
  tableVariables,
  timerVariables,
} from '#shared/environment/variables.ts';

/** What `evict` reads from its environment. */
export const evictEnvironment = z.object({
  ...tableVariables,
  ...sourceVariables,
  ...deadLetterVariables,
  ...dueQueueVariables,
  ...timerVariables,
  ...matchingVariables,
  ...metricVariables,
});
