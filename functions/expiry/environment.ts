import * as z from 'zod';
import { deadLetterVariables, dueQueueVariables, tableVariables } from '#shared/environment/variables.ts';

/** What `expiry` reads from its environment. */
export const expiryEnvironment = z.object({
  ...tableVariables,
  ...dueQueueVariables,
  ...deadLetterVariables,
});
