/** Why there is no release now, in one sentence for whoever asked for one. */
export class ReleaseError extends Error {
  override name = 'ReleaseError';
}
