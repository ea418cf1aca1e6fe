import type { MatchOptions, Toleration } from '#shared/taints/taint.ts';
import { tolerationProblems } from '#shared/taints/tolerations.ts';
import { type Problem, problem } from '#shared/taints/validation.ts';

/**
 * Why an API server would reject tolerations for a live pod. They may be added and their seconds changed. A pod with
 * `Lt` or `Gt` may keep these, regardless of the gate. Upstream: `ValidatePodUpdate`.
 */
export function tolerationsUpdateProblems(
  tolerations: readonly Toleration[],
  oldTolerations: readonly Toleration[],
  options: MatchOptions,
): readonly Problem[] {
  const inUse = oldTolerations.some(({ operator }) => operator === 'Lt' || operator === 'Gt');
  const kept = oldTolerations.every((old) =>
    tolerations.some((toleration) => sameButSeconds(old, toleration)),
  );
  const fault = 'of a live pod may only be added or change their tolerationSeconds: keep the existing ones';
  return [
    ...tolerationProblems(tolerations, { comparisonOperators: options.comparisonOperators || inUse }),
    ...(kept ? [] : [problem('FieldValueForbidden', 'tolerations', fault)]),
  ];
}

function sameButSeconds(a: Toleration, b: Toleration): boolean {
  return (
    (a.key ?? '') === (b.key ?? '') &&
    (a.operator ?? '') === (b.operator ?? '') &&
    (a.value ?? '') === (b.value ?? '') &&
    (a.effect ?? '') === (b.effect ?? '')
  );
}
