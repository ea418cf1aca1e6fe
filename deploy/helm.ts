import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const CHART = join(import.meta.dirname, 'chart');
/** The default namespace of both modes. */
export const NAMESPACE = 'taintward';

/** Values as `--values` takes them; JSON is YAML. */
export type Values = Readonly<Record<string, unknown>>;

/** Helm is missing or failed; the message is its error output. */
export class HelmError extends Error {
  override readonly name = 'HelmError';
}

/** Runs helm, from the variable `HELM` or else from the `PATH`, and returns its output. Throws `HelmError`. */
export function helm(args: readonly string[], input = ''): string {
  const program = process.env['HELM'] || 'helm';
  const { status, stdout, stderr, error } = spawnSync(program, args, { input, encoding: 'utf8' });
  if (error)
    throw new HelmError(`${program} cannot be run (${error.message}): let HELM name helm of Helm 4.`);
  if (status !== 0) throw new HelmError(stderr.trim());
  return stdout;
}

/**
 * Returns the arguments of a helm command after its name and the release name: the chart, the namespace, and values from standard
 * input.
 */
export const chartArguments = (namespace = NAMESPACE): readonly string[] => [
  CHART,
  ...['--namespace', namespace, '--values', '-'],
];

/** Returns the manifests for these values, as YAML. Throws `HelmError`. */
export const renderChart = (values: Values, namespace?: string): string =>
  helm(['template', 'taintward', ...chartArguments(namespace)], JSON.stringify(values));

/** Returns the findings of `helm lint`; throws `HelmError` if they are more than advice. */
export const lintChart = (values: Values): string =>
  helm(['lint', '--strict', ...chartArguments()], JSON.stringify(values));
