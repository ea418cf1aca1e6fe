/** The release is not possible; the message gives the user the reason in one sentence. */
export class ReleaseError extends Error {
  override name = 'ReleaseError';
}
