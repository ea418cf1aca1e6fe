import { LINT_RULES } from '#shared/explain/lint.ts';
import type { LintFinding, LintReport } from '#shared/operations/ask/lint.ts';
import { VERSION } from '#shared/version.ts';

const RULES = Object.entries(LINT_RULES);

/**
 * Returns a report as SARIF 2.1.0, which code hosts show next to the lines. An object of a cluster has no
 * line, so it is a logical location.
 */
export const sarifOf = ({ findings, unknown }: LintReport): object => ({
  $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
  version: '2.1.0',
  runs: [
    {
      tool: {
        driver: {
          name: 'taintward lint',
          semanticVersion: VERSION,
          rules: RULES.map(([id, { level, title, remediation }]) => ({
            id,
            shortDescription: { text: title },
            help: { text: remediation },
            defaultConfiguration: { level },
          })),
        },
      },
      invocations: [
        {
          executionSuccessful: true,
          toolExecutionNotifications: unknown.map((text) => ({ level: 'warning', message: { text } })),
        },
      ],
      results: findings.map(resultOf),
    },
  ],
});

function resultOf({ rule, level, message, remediation, object, at }: LintFinding): object {
  const { namespace, kind, name } = object;
  const inNamespace = namespace === undefined ? '' : `${namespace}/`;
  return {
    ruleId: rule,
    ruleIndex: RULES.findIndex(([id]) => id === rule),
    level,
    message: { text: `${message} ${remediation}` },
    locations: [
      {
        ...(at
          ? {
              physicalLocation: {
                artifactLocation: { uri: at.file.split('/').map(encodeURIComponent).join('/') },
                region: { startLine: at.line },
              },
            }
          : {}),
        logicalLocations: [{ fullyQualifiedName: `${inNamespace}${kind}/${name}`, name, kind: 'resource' }],
      },
    ],
  };
}
