import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import * as z from 'zod';

/** The file of the rules that users load. */
export const ALERTS_FILE = join(import.meta.dirname, '../../docs/integrations/alerts.yaml');

const rule = z.strictObject({
  alert: z.string(),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(['warning', 'critical']) }),
  annotations: z.strictObject({
    condition: z.string().optional(),
    summary: z.string(),
    description: z.string(),
    runbook: z.string(),
  }),
});
const file = z.strictObject({
  groups: z.tuple([z.strictObject({ name: z.string(), rules: z.array(rule) })]),
});

/** Returns the alert rules of docs/integrations/alerts.yaml. */
export const alertRules = (): readonly z.output<typeof rule>[] =>
  file.parse(load(readFileSync(ALERTS_FILE, 'utf8'))).groups[0].rules;
