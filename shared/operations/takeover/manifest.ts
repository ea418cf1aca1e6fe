import { dump } from 'js-yaml';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly [field: string]: unknown;
}

/** Kinds of a takeover have regular plurals. */
export const pathOf = ({ apiVersion, kind, metadata: { name } }: Manifest): string =>
  `/apis/${apiVersion}/${kind.toLowerCase().replace(/y$/, 'ie')}s/${name}`;

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
