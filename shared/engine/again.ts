/** A message whose work is not over, though nothing failed: it is to come again then. A queue may round that up to whole seconds. */
export interface Again {
  readonly againInSeconds: number;
}
