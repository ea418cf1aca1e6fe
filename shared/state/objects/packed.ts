import { gunzipSync, gzipSync } from 'node:zlib';
import { StoreError } from '#shared/state/store.ts';

/** Returns a value in the form of an object's text field: JSON, gzipped, in base64. */
export const pack = (value: object): string => gzipSync(JSON.stringify(value)).toString('base64');

/** Returns a packed value, whose shape is unchecked. Throws `StoreError` naming `what` if the text is damaged. */
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
