/** Characters that queues reject but JSON leaves unescaped. JSON escapes all other forbidden ones. */
const FORBIDDEN = /[\ufffe\uffff]/g;

/** Encodes a value as JSON that SQS accepts as a message body, regardless of the characters in names. */
export const messageJson = (value: object): string =>
  JSON.stringify(value).replace(FORBIDDEN, (character) => `\\u${character.charCodeAt(0).toString(16)}`);
