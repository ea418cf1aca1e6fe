import { App, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { ConfigError, readConfig } from './config.ts';
import { TaintwardStack } from './taintward-stack.ts';

try {
  const app = new App();
  const config = readConfig(app.node);
  new TaintwardStack(app, config.name, { config });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
