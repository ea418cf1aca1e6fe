import { type DueDeps, dueConsumption } from '#shared/aws/due/due-consumption.ts';
import { type ConsumerDeps, consume } from '#shared/aws/lambda/consume.ts';

export type EvictHandlerDeps = DueDeps & ConsumerDeps;

/** Makes the Lambda handler of `evictions-due`. */
export const createHandler = (deps: EvictHandlerDeps) => consume(dueConsumption(deps), deps);
