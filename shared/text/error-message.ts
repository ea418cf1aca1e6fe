/** Returns the message of a thrown value, for people, even if it is no `Error`. */
export const errorMessage = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
