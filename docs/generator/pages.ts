import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { policyJsonSchema } from '#shared/state/policy-document.ts';
import { noticeSchema } from '#shared/telemetry/notice.ts';
import { alertsFile } from './alerts-file.ts';
import { referenceOf } from './cli-page.ts';
import { conditionsPage } from './conditions-page.ts';
import { configurationPage } from './configuration-page.ts';
import { housePicture } from './house-picture.ts';
import { jsonPage, schemaFile } from './json-page.ts';
import { schemasOf } from './json-schema.ts';
import { logPage } from './log-page.ts';
import { metricsPage } from './metrics-page.ts';
import { policyPage } from './policy-page.ts';
import { readServiceCode } from './service-code.ts';

/** A page or picture that is generated from the code. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

const ALERTS = join(import.meta.dirname, '../integrations/alerts.yaml');

/** Returns all pages for the current code. */
export async function pages(): Promise<readonly Page[]> {
  using code = readServiceCode();
  const page = (name: string, text: string) => ({
    path: join(import.meta.dirname, '../reference', name),
    text,
  });
  const schema = (name: string, of: object) => page(name, `${JSON.stringify(of, null, 2)}\n`);
  const outputs = schemasOf(code, 'Outputs', 'iso');
  const inputs = schemasOf(code, 'PageInputs', 'ms');
  return [
    page('json.md', jsonPage(outputs)),
    ...[...outputs, ...inputs].map((each) => schema(schemaFile(each.name), each.schema)),
    page('metrics.md', await metricsPage(code)),
    page('log-events.md', logPage(code)),
    page('conditions.md', conditionsPage()),
    page('configuration.md', configurationPage()),
    // The program's commands are only read, not run.
    page('cli.md', referenceOf(createProgram({} as CliDeps))),
    schema('notifications.schema.json', z.toJSONSchema(noticeSchema, { io: 'input' })),
    schema('policy.schema.json', policyJsonSchema()),
    page('policy.md', policyPage(readFileSync(join(import.meta.dirname, '../reference/policy.md'), 'utf8'))),
    { path: ALERTS, text: alertsFile(readFileSync(ALERTS, 'utf8')) },
    { path: join(import.meta.dirname, '../images/house.svg'), text: housePicture() },
  ];
}
