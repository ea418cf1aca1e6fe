import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { renderChart, type Values } from './helm.ts';

/*
 * Generates the manifests for kustomize: the chart, rendered file by file. The kustomization and the namespace of each folder are
 * written by hand.
 */

const HEADER = '# Made of deploy/chart by npm run manifests: change it there.\n';
const SOURCE = '# Source: taintward/templates/';

/** The chart's values for each folder. All optional files are enabled, and all other values are the defaults. */
export const FOLDERS: Readonly<Record<string, Values>> = {
  'in-cluster': {
    mode: 'service',
    rbac: { evictionApi: true, replicas: true, takeover: true, userRoles: true },
    serviceMonitor: { enabled: true },
    flowControl: { enabled: true },
    admissionPolicy: { enabled: true, nodes: true },
  },
  agent: {
    mode: 'agent',
    rbac: { evictionApi: true, replicas: true, takeover: true },
    serviceMonitor: { enabled: true },
    flowControl: { enabled: true },
    admissionPolicy: { enabled: true, nodes: true },
    // Placeholders that differ from all real values; settings.yaml in that folder lists them.
    agent: { region: 'eu-west-1', account: '111122223333', cluster: 'prod', id: 'edge-1' },
  },
};

/** Returns the text of each file, by its path in this folder. Throws `HelmError`. */
export function manifests(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [folder, values] of Object.entries(FOLDERS)) {
    for (const rendered of renderChart(values).split(/^---\n/m)) {
      const [first = '', ...lines] = rendered.split('\n');
      if (!first.startsWith(SOURCE)) continue;
      const path = join(folder, first.slice(SOURCE.length));
      const before = files.get(path);
      const object = `${lines.join('\n').trim()}\n`;
      files.set(path, before === undefined ? `${HEADER}${object}` : `${before}---\n${object}`);
    }
  }
  return files;
}

if (import.meta.main) {
  for (const [path, text] of manifests()) {
    const file = join(import.meta.dirname, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
