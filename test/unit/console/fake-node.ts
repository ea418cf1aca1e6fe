/** An element or text with what the page uses of it. */
export class FakeNode extends EventTarget {
  readonly name: string;
  readonly childNodes: FakeNode[] = [];
  parentNode: FakeNode | undefined;
  data = '';
  value = '';

  constructor(name: string) {
    super();
    this.name = name;
  }

  get firstChild(): FakeNode | undefined {
    return this.childNodes[0];
  }

  get nextSibling(): FakeNode | undefined {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1];
  }

  /** All nodes below, and itself. */
  get all(): readonly FakeNode[] {
    return [this, ...this.childNodes.flatMap((child) => child.all)];
  }

  insertBefore(node: FakeNode, next: FakeNode | null): void {
    node.remove();
    const at = next ? this.childNodes.indexOf(next) : this.childNodes.length;
    this.childNodes.splice(at, 0, node);
    node.parentNode = this;
  }

  remove(): void {
    const siblings = this.parentNode?.childNodes ?? [];
    siblings.splice(siblings.indexOf(this), 1);
  }

  setAttribute(): void {}
  removeAttribute(): void {}
  showModal(): void {}
  focus(): void {}
}

export const fakeDocument = {
  createElementNS: (_: string, name: string) => new FakeNode(name),
  createTextNode: (data: string) => Object.assign(new FakeNode('#text'), { data }),
};
