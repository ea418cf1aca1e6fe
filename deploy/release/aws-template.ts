import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  App,
  CfnParameter,
  CliCredentialsStackSynthesizer,
  DefaultStackSynthesizer,
  type IStackSynthesizer,
} from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { readConfig } from '../../cdk/config.ts';
import { TaintwardStack } from '../../cdk/taintward-stack.ts';
import { CONDITIONS, INTERFACE, PARAMETERS, STAND_INS } from './aws-parameters.ts';
import { type Json, type JsonObject, mergeTemplates, type Variant } from './merge-templates.ts';
import { zip } from './zip.ts';

const { context: FLAGS }: { context: JsonObject } = JSON.parse(
  readFileSync(join(PROJECT_DIR, 'cdk.json'), 'utf8'),
);

/** The stack's own tests show its warnings. */
const QUIET = {
  '@aws-cdk/core:validateAgainstDefaultRules': false,
  '@aws-cdk/core:annotationsInValidationReport': false,
};

const ASSETS = {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation substitutes it.
  fileAssetsBucketName: '${CodeBucket}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation substitutes it.
  bucketPrefix: '${CodePrefix}',
};

/**
 * Makes the template that CloudFormation deploys without the CDK, and writes the archives of the functions into `directory`, by
 * the names that it has for them. Synthesizes the stack for each combination of optional settings, with stand-ins for the values
 * that only the operator knows, and merges the results into one template with conditions and parameters.
 */
export function releaseForAws(directory: string): JsonObject {
  const outdir = mkdtempSync(join(tmpdir(), 'taintward-template-'));
  try {
    const template = releasedTemplate(outdir);
    for (const name of readdirSync(outdir)) {
      const [, hash] = /^asset\.([0-9a-f]{64})$/.exec(name) ?? [];
      if (hash !== undefined) writeFileSync(join(directory, `${hash}.zip`), zip(join(outdir, name)));
    }
    return template;
  } finally {
    rmSync(outdir, { recursive: true });
  }
}

/** Returns the template, and leaves its assets in `outdir`. `flags`: context keys beside ours. */
export function releasedTemplate(outdir: string, flags: JsonObject = {}): JsonObject {
  const variants = combinations().map(
    (holds): Variant => ({ holds, template: variant(holds, outdir, flags) }),
  );
  const { Description, Conditions, ...sections } = mergeTemplates(variants);
  return {
    AWSTemplateFormatVersion: '2010-09-09',
    Description,
    Metadata: { 'AWS::CloudFormation::Interface': INTERFACE },
    Parameters: PARAMETERS,
    Conditions: { ...CONDITIONS, ...Conditions },
    ...(withParameters(sections) as JsonObject),
  };
}

/**
 * Returns what holds for each variant. A stack for LocalStack runs no relay; a role for deployments changes one statement alone;
 * recipients of warnings depend on no VPC.
 */
function combinations(): readonly (readonly string[])[] {
  const free = ['RelayInStack', 'HasVpc', 'HasAlarmTopic', 'HasAlarmEmail'];
  const all = free.reduce<readonly (readonly string[])[]>(
    (sets, name) => sets.flatMap((set) => [set, [...set, name]]),
    [[]],
  );
  const withWarnings = all.filter((set) => !set.includes('HasVpc')).map((set) => [...set, 'HasWarningTopic']);
  return [...all, ...withWarnings, ['OnLocalStack'], ['HasDeploymentRole']];
}

function variant(holds: readonly string[], outdir: string, flags: JsonObject): JsonObject {
  const has = (name: string) => holds.includes(name);
  const { alarmTopicArn, warningTopicArn, alarmEmail, vpcId, subnetIds, relayImage, ...always } = STAND_INS;
  const settings = {
    ...always,
    relay: has('RelayInStack') ? 'fargate' : 'external',
    ...(has('RelayInStack') && { relayImage }),
    ...(has('HasVpc') && { vpcId, subnetIds }),
    ...(has('HasAlarmTopic') && { alarmTopicArn }),
    ...(has('HasWarningTopic') && { warningTopicArn }),
    ...(has('HasAlarmEmail') && { alarmEmail }),
    ...(has('OnLocalStack') && { endpoint: 'localstack' }),
  };
  const context = Object.entries(settings).map(([key, value]) => [`taintward:${key}`, value]);
  const app = new App({
    outdir,
    context: { ...FLAGS, ...QUIET, ...Object.fromEntries(context), ...flags },
  });
  // The CDK is not written for exactOptionalPropertyTypes: an optional property of the interface is undefined here.
  const synthesizer = (
    has('HasDeploymentRole')
      ? new DefaultStackSynthesizer({
          ...ASSETS,
          // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation substitutes it.
          cloudFormationExecutionRole: '${DeploymentRoleArn}',
          generateBootstrapVersionRule: false,
        })
      : new CliCredentialsStackSynthesizer(ASSETS)
  ) as IStackSynthesizer;
  // Some logical IDs contain the ID of the stack, which is the default of its name.
  const config = readConfig(app.node, undefined, '');
  const stack = new TaintwardStack(app, 'taintward', { config, synthesizer });
  for (const name of ['CodeBucket', 'CodePrefix']) new CfnParameter(stack, name);
  if (has('HasDeploymentRole')) new CfnParameter(stack, 'DeploymentRoleArn');
  return Template.fromStack(stack).toJSON();
}

const PARAMETER_OF = new Map(
  Object.entries(STAND_INS).map(([key, value]) => [
    JSON.stringify(value),
    `${key.charAt(0).toUpperCase()}${key.slice(1)}`,
  ]),
);
/** The stand-ins that are parts of other texts. */
const EMBEDDED = new RegExp(
  `(${[STAND_INS.name, STAND_INS.alarmTopicArn, STAND_INS.warningTopicArn, STAND_INS.alarmEmail].join('|')})`,
);

/** Puts the parameters in place of their stand-ins. */
function withParameters(value: Json): Json {
  const parameter = PARAMETER_OF.get(JSON.stringify(value));
  if (parameter !== undefined) return { Ref: parameter };
  if (Array.isArray(value)) return value.map(withParameters);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withParameters(item)]));
  if (typeof value !== 'string' || !EMBEDDED.test(value)) return value;
  const parts = value.split(EMBEDDED).filter((part) => part !== '');
  return { 'Fn::Join': ['', parts.map(withParameters)] };
}
