import { dump } from 'js-yaml';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly [field: string]: unknown;
}

const COLLECTIONS: Readonly<Record<string, string>> = {
  CustomResourceDefinition: 'customresourcedefinitions',
  Takeover: 'takeovers',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  MutatingAdmissionPolicy: 'mutatingadmissionpolicies',
  MutatingAdmissionPolicyBinding: 'mutatingadmissionpolicybindings',
};

export const pathOf = ({ apiVersion, kind, metadata: { name } }: Manifest): string =>
  `/apis/${apiVersion}/${COLLECTIONS[kind]}/${name}`;

export const LABELS = { 'app.kubernetes.io/name': 'taintward' };

export function manifestText(comment: string, objects: readonly Manifest[]): string {
  const heading = comment
    .trim()
    .split('\n')
    .map((line) => `# ${line}`.trimEnd())
    .join('\n');
  const documents = objects.map((object) => dump(object, { lineWidth: -1, noRefs: true }));
  return `${heading}\n${documents.join('---\n')}`;
}

/** Returns texts as a CEL list. Taint keys contain no characters that need escapes. */
export const celList = (texts: readonly string[]): string =>
  `[${texts.map((text) => JSON.stringify(text)).join(', ')}]`;
