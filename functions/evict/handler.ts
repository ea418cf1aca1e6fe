import { type ConsumerDeps, consume } from '#shared/aws/consume.ts';
import { type DueDeps, dueConsumption } from '#shared/aws/due-consumption.ts';

export type EvictHandlerDeps = DueDeps & ConsumerDeps;

/** Makes the Lambda handler of `evictions-due`. */
export const createHandler = (deps: EvictHandlerDeps) => consume(dueConsumption(deps), deps);
