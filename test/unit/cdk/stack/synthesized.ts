import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Validations } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { AwsSolutionsChecks } from 'cdk-nag';
import { PROJECT_DIR } from '../../../../cdk/bundle.ts';
import { readConfig } from '../../../../cdk/config.ts';
import { TaintwardStack } from '../../../../cdk/taintward-stack.ts';

type Context = Readonly<Record<string, unknown>>;

const { context: ALWAYS }: { context: Context } = JSON.parse(
  readFileSync(join(PROJECT_DIR, 'cdk.json'), 'utf8'),
);

const templates = new Map<string, Template>();

/** The template of a deployment with this context, as `cdk synth` makes it but for the functions' code. */
export function synthesized(context: Context = {}): Template {
  const key = JSON.stringify(context);
  const template = templates.get(key) ?? inApp(context, (app) => Template.fromStack(stackOf(app)));
  templates.set(key, template);
  return template;
}

/** What such a deployment warns of. */
export function warningsOf(context: Context = {}): readonly string[] {
  return inApp(context, (app) =>
    Annotations.fromStack(stackOf(app))
      .findWarning('*', Match.anyValue())
      .map(({ entry }) => String(entry.data)),
  );
}

/** Throws what cdk-nag finds. */
export function checked(context: Context = {}): void {
  inApp(context, (app) => {
    stackOf(app);
    Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
    app.synth();
  });
}

function stackOf(app: App): TaintwardStack {
  const config = readConfig(app.node);
  return new TaintwardStack(app, config.name, { config });
}

function inApp<T>(context: Context, use: (app: App) => T): T {
  const outdir = mkdtempSync(join(tmpdir(), 'taintward-cdk-'));
  try {
    // What the functions consist of is another test's matter, and takes seconds.
    return use(new App({ outdir, context: { ...ALWAYS, ...context, 'aws:cdk:bundling-stacks': [] } }));
  } finally {
    rmSync(outdir, { recursive: true });
  }
}
