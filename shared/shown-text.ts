/**
 * Characters that a terminal or an editor acts upon instead of showing them: C0 and C1 controls, line and paragraph
 * separators, and those that change the direction of what follows (UTS 55, "Trojan Source").
 */
const ACTED_UPON = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** A text of anybody's as one line that can only be read: what would be acted upon is written as in JSON, like `\u001b`. */
export const shownText = (text: string): string => text.replace(ACTED_UPON, escaped);
