import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const CHART = join(import.meta.dirname, 'chart');
/** Where both modes run unless somebody says otherwise. */
export const NAMESPACE = 'taintward';

/** Values as `--values` takes them; JSON is YAML. */
export type Values = Readonly<Record<string, unknown>>;

/** Helm could not be run, or refused; the message is what it said. */
export class HelmError extends Error {
  override readonly name = 'HelmError';
}

/** Runs helm, which `HELM` names, or else the one on the `PATH`; returns what it printed. Throws `HelmError`. */
export function helm(args: readonly string[], input = ''): string {
  const program = process.env['HELM'] || 'helm';
  const { status, stdout, stderr, error } = spawnSync(program, args, { input, encoding: 'utf8' });
  if (error)
    throw new HelmError(`${program} cannot be run (${error.message}): let HELM name helm of Helm 4.`);
  if (status !== 0) throw new HelmError(stderr.trim());
  return stdout;
}

/** The words of a command of helm behind its name and that of the release: the chart, the namespace, and values from standard input. */
export const chartArguments = (namespace = NAMESPACE): readonly string[] => [
  CHART,
  ...['--namespace', namespace, '--values', '-'],
];

/** What is installed by these values, as YAML. Throws `HelmError`. */
export const renderChart = (values: Values, namespace?: string): string =>
  helm(['template', 'taintward', ...chartArguments(namespace)], JSON.stringify(values));

/** What helm finds to complain of; throws `HelmError` if it is more than advice. */
export const lintChart = (values: Values): string =>
  helm(['lint', '--strict', ...chartArguments()], JSON.stringify(values));
