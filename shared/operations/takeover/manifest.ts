import { dump } from 'js-yaml';

/** A Kubernetes object as it is written into a manifest. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly [field: string]: unknown;
}

/** A part of a label selector (`meta/v1.LabelSelectorRequirement`). */
export interface Requirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values?: readonly string[];
}

/** Collections of the kinds that a takeover is made of. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  CustomResourceDefinition: 'customresourcedefinitions',
  Takeover: 'takeovers',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  MutatingAdmissionPolicy: 'mutatingadmissionpolicies',
  MutatingAdmissionPolicyBinding: 'mutatingadmissionpolicybindings',
  MutatingPolicy: 'mutatingpolicies',
};

/** Where an object of a takeover is. */
export const pathOf = ({ apiVersion, kind, metadata: { name } }: Manifest): string =>
  `/apis/${apiVersion}/${COLLECTIONS[kind]}/${name}`;

/** By which our own objects are known, the pods of a service or an agent among them. */
export const OUR_LABEL = 'app.kubernetes.io/name';
export const OUR_NAME = 'taintward';

/** What all objects of a takeover are labelled with. */
export const LABELS = { [OUR_LABEL]: OUR_NAME };

/** Objects as one YAML text, under a comment. */
export function manifestText(comment: string, objects: readonly Manifest[]): string {
  const heading = comment
    .trim()
    .split('\n')
    .map((line) => `# ${line}`.trimEnd())
    .join('\n');
  const documents = objects.map((object) => dump(object, { lineWidth: -1, noRefs: true }));
  return `${heading}\n${documents.join('---\n')}`;
}

/** A text as a CEL literal; labels and taint keys hold nothing that would have to be escaped. */
export const celText = (text: string): string => JSON.stringify(text);

/** Texts as a CEL list. */
export const celList = (texts: readonly string[]): string => `[${texts.map(celText).join(', ')}]`;
