/** An object of the Kubernetes API as far as its kind does not matter; the rest of it is of its kind. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    /** Absent on what is to be created. */
    readonly resourceVersion?: string;
  };
}

/**
 * The objects of one kind in one namespace, as the API server keeps them. Reads are consistent. Every method rejects
 * with `ApiError`.
 */
export interface Objects {
  /** `undefined`: there is none of that name. */
  get(name: string): Promise<unknown>;
  /** Those with all of these labels, page by page. */
  list(labels?: Readonly<Record<string, string>>): AsyncIterable<unknown>;
  /** The object as it was stored; `undefined`: there is one of that name. */
  create(object: KubernetesObject): Promise<unknown>;
  /**
   * Puts the object in place of the one whose `resourceVersion` it bears, and gives it as it was stored; `undefined`:
   * that one was changed or removed since. One that says nothing new is stored under the version that there is.
   */
  replace(object: KubernetesObject): Promise<unknown>;
  /** Removes the object of this name and version; does nothing when it was changed or removed since. */
  remove(name: string, resourceVersion: string): Promise<void>;
}
