import { createDeltaHandler, type DeltaHandlerDeps } from '#shared/deltas/delta-handler.ts';

/** Handles `pod-deltas.fifo`: each message is one pod that appeared on, changed on, or left a tainted node. */
export const createHandler = (deps: DeltaHandlerDeps) => createDeltaHandler(deps, ['pod', 'pod-gone']);
