/** A string, template, or regular expression in TypeScript. */
export interface Literal {
  readonly text: string;
  readonly line: number;
  /** The code right before it, which shows its role. */
  readonly before: string;
}

/** Code in which nothing begins or ends. */
const PLAIN = /[^/'"`{}]+/y;
const COMMENT = /\/\/.*|\/\*[\s\S]*?\*\//y;
const STRING = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
/** Part of a template, up to its end or its next hole. */
const TEMPLATE = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y;
/** The code before a slash that begins a regular expression. A slash after a value divides. */
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};>+]|\b(?:return|typeof|case|in|of))\s*$/;
/** Characters of the code before a literal that are kept. */
const BEFORE = 40;

/** Returns the literals in TypeScript. A hole of a template is a space in its text; literals in the hole follow. */
export function literalsIn(source: string): readonly Literal[] {
  const reader = new Reader(source);
  reader.code();
  return reader.literals;
}

/** Returns the code in TypeScript without comments and literals; code in holes of templates is included. */
export function codeIn(source: string): string {
  const reader = new Reader(source);
  reader.code();
  return reader.rest.join('');
}

class Reader {
  readonly literals: Literal[] = [];
  /** The code besides literals and comments, piece by piece. */
  readonly rest: string[] = [];
  readonly #source: string;
  #at = 0;
  /** The line of the last literal, and where that begins. */
  #line = { number: 1, at: 0 };

  constructor(source: string) {
    this.#source = source;
  }

  /** Reads code to its end, or beyond the brace that closes a hole. */
  code(): void {
    for (let depth = 0; depth >= 0 && this.#at < this.#source.length; ) {
      const from = this.#at;
      const plain = this.#take(PLAIN);
      if (plain !== undefined) {
        this.rest.push(plain);
        continue;
      }
      if (this.#take(COMMENT) !== undefined) continue;
      const literal = this.#take(STRING) ?? (this.#mayBeRegex() ? this.#take(REGEX) : undefined);
      const next = this.#source[this.#at];
      if (literal !== undefined) this.#add(from, literal);
      else if (next === '`') this.#template();
      else {
        if (next === '{') depth += 1;
        if (next === '}') depth -= 1;
        this.rest.push(next ?? '');
        this.#at += 1;
      }
    }
  }

  #template(): void {
    const from = this.#at++;
    let text = '';
    for (let part = this.#take(TEMPLATE); part !== undefined; part = this.#take(TEMPLATE)) {
      if (part.endsWith('`')) {
        this.#add(from, text + part.slice(0, -1));
        return;
      }
      text += `${part.slice(0, -2)} `;
      this.code();
    }
  }

  #mayBeRegex(): boolean {
    return BEFORE_REGEX.test(this.#before(this.#at));
  }

  #before(at: number): string {
    return this.#source.slice(Math.max(0, at - BEFORE), at);
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #add(from: number, text: string): void {
    this.literals.push({ text, line: this.#lineOf(from), before: this.#before(from) });
  }

  /** A literal in a hole comes before the template around it. */
  #lineOf(at: number): number {
    const { number, at: known } = this.#line;
    const passed = this.#source.slice(Math.min(known, at), Math.max(known, at)).split('\n').length - 1;
    this.#line = { number: at < known ? number - passed : number + passed, at };
    return this.#line.number;
  }
}
