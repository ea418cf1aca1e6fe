import type { Taint, Toleration } from '#shared/taints/taint.ts';
import type { NodeObject, TolerationObject } from './objects.ts';

/** A node's taints as the matcher takes them. */
export const taintsOf = ({ spec }: Pick<NodeObject, 'spec'>): readonly Taint[] =>
  (spec.taints ?? []).map(({ key, value, effect }) => ({
    key,
    ...(value === undefined ? {} : { value }),
    effect,
  }));

/** A pod's tolerations as the matcher takes them. */
export const tolerationsOf = (tolerations: readonly TolerationObject[] = []): readonly Toleration[] =>
  tolerations.map(({ key, operator, value, effect, tolerationSeconds }) => ({
    ...(key === undefined ? {} : { key }),
    ...(operator === undefined ? {} : { operator }),
    ...(value === undefined ? {} : { value }),
    ...(effect === undefined ? {} : { effect }),
    ...(tolerationSeconds === undefined ? {} : { tolerationSeconds: BigInt(tolerationSeconds) }),
  }));
