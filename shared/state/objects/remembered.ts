/** Values that were read or written last, by name, up to a total number of characters. */
export class Remembered<Thing> {
  readonly #mostChars: number;
  readonly #things = new Map<string, { readonly thing: Thing; readonly chars: number }>();
  #chars = 0;

  constructor(mostChars: number) {
    this.#mostChars = mostChars;
  }

  get(name: string): Thing | undefined {
    return this.#things.get(name)?.thing;
  }

  /** `charsOf`: returns the characters of a new value. */
  set(name: string, thing: Thing, charsOf: (thing: Thing) => number): void {
    const before = this.#things.get(name);
    const chars = before?.thing === thing ? before.chars : charsOf(thing);
    this.forget(name);
    this.#things.set(name, { thing, chars });
    this.#chars += chars;
    for (const oldest of this.#things.keys()) {
      if (this.#chars <= this.#mostChars) return;
      this.forget(oldest);
    }
  }

  forget(name: string): void {
    this.#chars -= this.#things.get(name)?.chars ?? 0;
    this.#things.delete(name);
  }
}
