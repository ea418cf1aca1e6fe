/** An object of the Kubernetes API, with only the fields that all kinds have. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    /** Absent on an object that is to be created. */
    readonly resourceVersion?: string;
  };
}

/** Objects of one kind in one namespace. Reads are consistent. Every method rejects with `ApiError`. */
export interface Objects {
  /** Returns an object; `undefined`: there is none with that name. */
  get(name: string): Promise<unknown>;
  /** Yields the objects with all of these labels, page by page. */
  list(labels?: Readonly<Record<string, string>>): AsyncIterable<unknown>;
  /** Creates an object, and returns it as stored; `undefined`: an object with that name exists. */
  create(object: KubernetesObject): Promise<unknown>;
  /**
   * Replaces the object of that `resourceVersion`; `undefined`: changed or removed since. Unchanged, it keeps its
   * version.
   */
  replace(object: KubernetesObject): Promise<unknown>;
  /** Removes the object with this name and version; does nothing if it was changed or removed since. */
  remove(name: string, resourceVersion: string): Promise<void>;
}
