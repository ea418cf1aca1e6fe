/** What was thrown says, for people; also what is no `Error`. */
export const errorMessage = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
