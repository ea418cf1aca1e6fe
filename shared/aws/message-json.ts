/** What no queue takes, though JSON has it unescaped; it writes all else of that kind as escapes already. */
const FORBIDDEN = /[\ufffe\uffff]/g;

/** JSON as the body of a message, whatever characters names have: SQS takes it. */
export const messageJson = (value: object): string =>
  JSON.stringify(value).replace(FORBIDDEN, (character) => `\\u${character.charCodeAt(0).toString(16)}`);
