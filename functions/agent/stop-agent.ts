/** Stops the parts of an agent. Each function resolves when its part has ended. */
export interface AgentStops {
  readonly relay: () => Promise<unknown>;
  readonly evictions: () => Promise<unknown>;
  /** Posts the Events that wait. */
  readonly events: () => Promise<unknown>;
}

/** Stops an agent. The last evictions may add Events, so those are posted after the evictions have ended. */
export async function stopAgent({ relay, evictions, events }: AgentStops): Promise<void> {
  await Promise.all([relay(), evictions()]);
  await events();
}
