import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Validations } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { AwsSolutionsChecks, type NagPack } from 'cdk-nag';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { readConfig } from '../../../../cdk/config.ts';
import { addStacks, type Stacks } from '../../../../cdk/stacks.ts';

type Context = Readonly<Record<string, unknown>>;

const { context: ALWAYS }: { context: Context } = JSON.parse(
  readFileSync(join(PROJECT_DIR, 'cdk.json'), 'utf8'),
);

/** The templates of an installation. */
interface Templates {
  readonly service: Template;
  /** By the agent's ID. */
  readonly agents: ReadonlyMap<string, Template>;
}

const installations = new Map<string, Templates>();

function templatesOf(context: Context): Templates {
  const key = JSON.stringify(context);
  const templates =
    installations.get(key) ??
    inApp(context, (app) => {
      const { service, agents } = stacksOf(app);
      return {
        service: Template.fromStack(service),
        agents: new Map([...agents].map(([id, stack]) => [id, Template.fromStack(stack)])),
      };
    });
  installations.set(key, templates);
  return templates;
}

/** Returns the template of a deployment with this context, as `cdk synth` makes it except for the functions' code. */
export const synthesized = (context: Context = {}): Template => templatesOf(context).service;

/** Returns the template of an agent's stack. */
export function synthesizedAgent(id: string, context: Context): Template {
  const template = templatesOf(context).agents.get(id);
  assert.ok(template, `there is no agent ${id}`);
  return template;
}

/** Returns the warnings of such a deployment. */
export function warningsOf(context: Context = {}): readonly string[] {
  return inApp(context, (app) =>
    Annotations.fromStack(stacksOf(app).service)
      .findWarning('*', Match.anyValue())
      .map(({ entry }) => String(entry.data)),
  );
}

/** Throws the findings of cdk-nag. */
export function checked(context: Context = {}): void {
  inApp(context, (app) => {
    stacksOf(app);
    Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
    app.synth();
  });
}

/** Returns the number of resources that each rule of these packs flags; 0 for a pack that flags none. */
export const findingsOf = (context: Context, packs: readonly (new (app: App) => NagPack)[]) =>
  inApp(context, (app) => {
    const { service } = stacksOf(app);
    return packs.flatMap((Pack) => {
      const pack = new Pack(app);
      const found = pack.validateScope(service).violations.map(({ ruleName, violatingResources }) => ({
        pack: pack.readPackName,
        rule: ruleName.slice(pack.readPackName.length + 1),
        count: violatingResources.length,
      }));
      return [{ pack: pack.readPackName, rule: '', count: 0 }, ...found];
    });
  });

/** Returns the service's stack. */
export const serviceOf = (context: Context): Stacks['service'] =>
  inApp(context, (app) => stacksOf(app).service);

const stacksOf = (app: App): Stacks => addStacks(app, readConfig(app.node));

function inApp<T>(context: Context, use: (app: App) => T): T {
  const outdir = mkdtempSync(join(tmpdir(), 'taintward-cdk-'));
  try {
    // Bundling is skipped: another test covers the functions' code, and it takes seconds.
    return use(new App({ outdir, context: { ...ALWAYS, ...context, 'aws:cdk:bundling-stacks': [] } }));
  } finally {
    rmSync(outdir, { recursive: true });
  }
}
