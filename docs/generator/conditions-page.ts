import { CONDITIONS } from '#shared/conditions/conditions.ts';
import { table } from './table.ts';

/** Returns the place of a runbook, from docs/how-to. */
export const runbookPath = (heading: string): string =>
  `runbooks.md#${heading.toLowerCase().replaceAll(' ', '-')}`;

/** Returns docs/reference/conditions.md, from the catalogue of conditions. */
export function conditionsPage(): string {
  const rows = Object.entries(CONDITIONS).map(([type, { severity, check, meaning, runbook }]) => [
    `\`${type}\``,
    severity,
    check,
    meaning,
    runbook === undefined ? '' : `[${runbook}](../how-to/${runbookPath(runbook)})`,
  ]);
  return `# Conditions

<!-- Made from the code by npm run docs. -->

Look up a condition that requires an action. \`taintward status\`, \`taintward doctor\`, and the console's overview show the same conditions, the most urgent first. The relay's
\`/readyz\` shows those of the checks \`relay\` and \`guard\`. \`taintward status -o json\` lists them in \`issues\`, by \`type\` and \`severity\`, each with its message and remediation.

- \`critical\`: pods are not evicted as they should be, or the relay may miss changes of nodes and pods.
- \`warning\`: somebody should look at it.

\`taintward status\` and \`taintward doctor\` exit with 2 while one of them holds. \`/readyz?verbose\` has a line for each cluster, \`[+]prod/live ok\`, or for each of its
conditions, \`[-]prod/guard-tripped failed: …\`. The alarm or alert rule of a condition has the name of its runbook.

${table(['Condition', 'Severity', 'Check of `doctor`', 'Meaning', 'Runbook'], rows)}
`;
}
