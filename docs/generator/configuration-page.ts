import { AGENT_VARIABLES } from '#functions/agent/options.ts';
import { RELAY_VARIABLES } from '#functions/relay/command-line.ts';
import type { EnvironmentVariable } from '#shared/aws/environment-text.ts';
import { defaultOf, PURPOSES } from '../../cdk/config.ts';
import { table } from './table.ts';

/** Returns docs/reference/configuration.md: the settings of each kind of installation. */
export const configurationPage = (): string => `# Configuration

<!-- Made from the code by npm run docs: change cdk/config.ts or the command lines of relay and agent, and run that. -->

Look up every setting of a deployment on AWS, of a relay or an agent that you run, and of the chart. The [policy](policy.md) defines which pods are evicted, and how.

## CDK context

Set these keys in \`cdk.json\` under \`context\`, or on the command line as \`-c KEY=VALUE\`. Command-line settings must be repeated each time, so keep
permanent settings in \`cdk.json\`. An invalid setting fails with one sentence that names the key.

${table(
  ['key', 'default', ''],
  (Object.keys(PURPOSES) as (keyof typeof PURPOSES)[]).map((key) => [
    `\`taintward:${key}\``,
    valueText(defaultOf(key)),
    PURPOSES[key],
  ]),
)}

For more about some of these keys, see:

- [addresses for allow-lists](../how-to/grant-cluster-access.md#endpoints-with-an-allow-list)
- [released images](../how-to/verify-release.md)
- [alarms](../how-to/runbooks.md) and [notifications](notifications.md)
- [relays for some clusters and agents](../concepts/isolation.md)
- [metrics by cluster](metrics.md#cloudwatch)
- [warm throughput and concurrency](quotas-and-costs.md#quotas)
- [LocalStack](../tutorials/localstack.md)

## Environment variables of a relay

The stack prints them for a relay that you run (\`taintward:relay=external\`).

${variablesTable(RELAY_VARIABLES)}

## Environment variables of an agent

The stack of an agent prints them, and the chart sets them.

${variablesTable(AGENT_VARIABLES)}

## Chart values

[\`values.yaml\`](../../deploy/chart/values.yaml) lists all values of the [chart](../../deploy/chart/README.md), with the reason for each default. Helm rejects unknown values.

## Options of npm start

See \`npm start -- --help\`.
`;

const variablesTable = (variables: readonly EnvironmentVariable[]): string =>
  table(
    ['variable', 'default', ''],
    variables.map(({ name, purpose, byDefault }) => [`\`${name}\``, valueText(byDefault), purpose]),
  );

const valueText = (value: string | undefined): string => (value === undefined ? '' : `\`${value}\``);
