import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';

const FILE = join(import.meta.dirname, '../../docs/integrations/grafana.json');

const panel = z.looseObject({
  id: z.int(),
  type: z.string(),
  title: z.string(),
  targets: z.array(z.looseObject({ refId: z.string(), expr: z.string() })).optional(),
});
const dashboard = z.looseObject({
  uid: z.string(),
  panels: z.array(panel),
  templating: z.looseObject({ list: z.array(z.looseObject({ name: z.string(), type: z.string() })) }),
});

/** A query of a panel, including Grafana's variables. */
export interface PanelQuery {
  readonly panel: string;
  readonly expr: string;
}

/** Returns the parsed docs/integrations/grafana.json. */
export const grafanaDashboard = () => dashboard.parse(JSON.parse(readFileSync(FILE, 'utf8')));

/** Returns all queries of the dashboard. */
export function panelQueries(): readonly PanelQuery[] {
  return grafanaDashboard().panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ panel: title, expr })),
  );
}
