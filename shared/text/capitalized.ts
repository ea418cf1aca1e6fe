/** Returns the text with a capital first letter, to begin a sentence with a text that continues one elsewhere. */
export const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
