import { gunzipSync, gzipSync } from 'node:zlib';
import { StoreError } from '#shared/state/store.ts';

/** A value as it is kept in a text field of an object: JSON, gzipped, in base64. */
export const pack = (value: object): string => gzipSync(JSON.stringify(value)).toString('base64');

/** What was packed; nothing is known yet of its shape. Throws `StoreError` naming `what` when it was changed beyond reading. */
export function unpack(text: string, what: string): unknown {
  try {
    return JSON.parse(gunzipSync(Buffer.from(text, 'base64')).toString());
  } catch (error) {
    throw new StoreError(
      `The stored ${what} cannot be read: it is not gzipped JSON in base64; was it changed by hand?`,
      {
        cause: error,
      },
    );
  }
}
