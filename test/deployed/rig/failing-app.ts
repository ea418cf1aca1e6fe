import { App } from 'aws-cdk-lib';
import { CfnParameter } from 'aws-cdk-lib/aws-ssm';
import { readConfig } from '../../../cdk/config.ts';
import { TaintwardStack } from '../../../cdk/taintward-stack.ts';

/*
 * The app that the guide deploys, with a resource at the end of its stack that cannot be created: `cdk bootstrap`
 * created it already.
 */
const app = new App();
const config = readConfig(app.node);
const stack = new TaintwardStack(app, config.name, { config });
const before = [...stack.node.children];
new CfnParameter(stack, 'Taken', {
  name: '/cdk-bootstrap/hnb659fds/version',
  type: 'String',
  value: '0',
}).node.addDependency(...before);
