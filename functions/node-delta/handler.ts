import { createDeltaHandler, type DeltaHandlerDeps } from '#shared/deltas/delta-handler.ts';

/** Handles `node-deltas.fifo`: each message decides one whole node. */
export const createHandler = (deps: DeltaHandlerDeps) => createDeltaHandler(deps, ['node']);
