/** The text with its first letter as a capital: what continues a sentence elsewhere begins one here. */
export const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
