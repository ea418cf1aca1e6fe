import type { ResourceName } from './objects/kinds.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** What discovery tells of one kind of object. */
interface Resource {
  readonly kind: string;
  readonly singularName: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly Verb[];
  readonly subresources: readonly Subresource[];
}

interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly Verb[];
}

const READ: readonly Verb[] = ['get', 'list', 'watch'];
const WRITE: readonly Verb[] = ['create', 'update', 'patch', 'delete'];
const STATUS_VERBS: readonly Verb[] = ['get', 'patch', 'update'];

export const RESOURCES: { readonly [R in ResourceName]: Resource } = {
  nodes: {
    kind: 'Node',
    singularName: 'node',
    shortNames: ['no'],
    namespaced: false,
    verbs: [...READ, ...WRITE],
    subresources: [{ name: 'status', kind: 'Node', verbs: STATUS_VERBS }],
  },
  pods: {
    kind: 'Pod',
    singularName: 'pod',
    shortNames: ['po'],
    namespaced: true,
    verbs: [...READ, ...WRITE],
    subresources: [
      { name: 'binding', kind: 'Binding', verbs: ['create'] },
      { name: 'status', kind: 'Pod', verbs: STATUS_VERBS },
    ],
  },
  events: {
    kind: 'Event',
    singularName: 'event',
    shortNames: ['ev'],
    namespaced: true,
    verbs: [...READ, ...WRITE],
    subresources: [],
  },
  namespaces: {
    kind: 'Namespace',
    singularName: 'namespace',
    shortNames: ['ns'],
    namespaced: false,
    // Deleting one would mean deleting all that is in it: not simulated.
    verbs: [...READ, 'create', 'update', 'patch'],
    subresources: [],
  },
};
