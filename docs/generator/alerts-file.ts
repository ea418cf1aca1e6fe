import { CONDITIONS, type ConditionType } from '#shared/conditions/conditions.ts';
import { runbookPath } from './conditions-page.ts';

const isCondition = (name: string): name is ConditionType => name in CONDITIONS;

/**
 * Returns docs/integrations/alerts.yaml. A rule that names a condition has its severity, its runbook, and as the first sentence of
 * the description its meaning; the rest of the file is unchanged. Throws `Error` for an unknown condition, or one without a runbook.
 */
export const alertsFile = (file: string): string =>
  file
    .split(/(?=^ {6}- alert: )/m)
    .map(ruleOf)
    .join('');

function ruleOf(rule: string): string {
  const [, name] = /^ +condition: (.+)$/m.exec(rule) ?? [];
  if (name === undefined) return rule;
  if (!isCondition(name)) throw new Error(`docs/integrations/alerts.yaml: there is no condition ${name}`);
  const { severity, meaning, runbook } = CONDITIONS[name];
  if (runbook === undefined) throw new Error(`docs/integrations/alerts.yaml: ${name} has no runbook`);
  return rule
    .replace(/(?<=\bseverity: )\w+/, severity)
    .replace(/(?<=\bsummary: ).*/, runbook)
    .replace(/(?<=\bdescription: "?)[^."]*\./, meaning)
    .replace(/(?<=\brunbook: ).*/, `docs/how-to/${runbookPath(runbook)}`);
}
