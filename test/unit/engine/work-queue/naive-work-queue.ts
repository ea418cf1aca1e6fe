import assert from 'node:assert/strict';

/** Returns the cluster of a key: key `2b` belongs to cluster 2. */
export const clusterOf = (key: string): string => key.slice(0, 1);

/** A model of a work queue, with lists that are searched: slow, and short enough to review. */
export class NaiveWorkQueue {
  #now: number;
  readonly #restMs: (failures: number) => number;
  #waiting: string[] = [];
  #working: { readonly key: string; again: 'added' | 'due' | undefined }[] = [];
  #alarms: { readonly key: string; readonly at: number }[] = [];
  #resting: { readonly key: string; readonly at: number }[] = [];
  readonly #failures: string[] = [];
  /**
   * The clusters whose keys were taken while a key of this cluster waited, since that key began to wait or was
   * last taken.
   */
  readonly #passed = new Map<string, string[]>();

  constructor(now: number, restMs: (failures: number) => number) {
    this.#now = now;
    this.#restMs = restMs;
  }

  add(key: string): void {
    if (!this.#resting.some((each) => each.key === key)) this.#begin(key, 'added');
  }

  addAt(key: string, at: number): void {
    if (at <= this.#now) this.#begin(key);
    else if (!this.#alarms.some((each) => each.key === key && each.at === at)) this.#alarms.push({ key, at });
  }

  /** Asserts that `key`, or no key, was the right one to take. */
  taken(key: string | undefined): void {
    if (key === undefined) {
      assert.deepEqual(this.#waiting, []);
      return;
    }
    const cluster = clusterOf(key);
    assert.equal(
      key,
      this.#waiting.find((each) => clusterOf(each) === cluster),
      'the first of its cluster',
    );
    for (const other of new Set(this.#waiting.map(clusterOf))) {
      if (other === cluster) continue;
      assert.ok(this.#workingOn(cluster) <= this.#workingOn(other), `${other} has less under way`);
      const passed = this.#passed.get(other) ?? [];
      if (this.#workingOn(cluster) === this.#workingOn(other))
        assert.ok(!passed.includes(cluster), `it is the turn of ${other}`);
      this.#passed.set(other, [...passed, cluster]);
    }
    this.#passed.delete(cluster);
    this.#waiting = this.#waiting.filter((each) => each !== key);
    this.#working.push({ key, again: undefined });
  }

  get underWay(): readonly string[] {
    return this.#working.map(({ key }) => key);
  }

  get resting(): number {
    return this.#resting.length;
  }

  get size(): number {
    return this.#waiting.length + this.#working.length + this.#resting.length;
  }

  done(key: string): void {
    while (this.#failures.includes(key)) this.#failures.splice(this.#failures.indexOf(key), 1);
    if (this.#end(key) !== undefined) this.#begin(key);
  }

  failed(key: string): void {
    this.#failures.push(key);
    if (this.#end(key) === 'due') {
      this.#begin(key);
      return;
    }
    const failures = this.#failures.filter((each) => each === key).length;
    this.#resting.push({ key, at: this.#now + this.#restMs(failures) });
  }

  untake(key: string): void {
    this.#end(key);
    this.#waiting.unshift(key);
  }

  /** Advances the time, one millisecond at a time. */
  pass(ms: number): void {
    for (let passed = 0; passed < ms; passed++) {
      this.#now += 1;
      const due = [...this.#alarms, ...this.#resting].filter(({ at }) => at === this.#now);
      this.#alarms = this.#alarms.filter(({ at }) => at > this.#now);
      for (const { key } of due) this.#begin(key);
    }
  }

  #begin(key: string, why: 'added' | 'due' = 'due'): void {
    const working = this.#working.find((each) => each.key === key);
    this.#resting = this.#resting.filter((each) => each.key !== key);
    if (working) working.again = working.again === 'due' ? 'due' : why;
    else if (!this.#waiting.includes(key)) {
      if (!this.#waiting.some((each) => clusterOf(each) === clusterOf(key)))
        this.#passed.delete(clusterOf(key));
      this.#waiting.push(key);
    }
  }

  #end(key: string): 'added' | 'due' | undefined {
    const again = this.#working.find((each) => each.key === key)?.again;
    this.#working = this.#working.filter((each) => each.key !== key);
    return again;
  }

  #workingOn(cluster: string): number {
    return this.#working.filter(({ key }) => clusterOf(key) === cluster).length;
  }
}
