import { NODE_NOT_READY, NODE_UNREACHABLE } from './node-condition-keys.ts';
import type { Toleration } from './taint.ts';

/** The API request that carries a pod's tolerations. */
export interface AdmissionRequest {
  /** As admission knows it: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`. */
  readonly operation: string;
  /** Lower-case plural, for example `pods`. */
  readonly resource: string;
  /** "" for the object itself. */
  readonly subresource: string;
}

/** The API server's two flags, not clamped: zero and negative seconds are handed on. */
export interface DefaultTolerationSeconds {
  /** `--default-not-ready-toleration-seconds` */
  readonly notReady: bigint;
  /** `--default-unreachable-toleration-seconds` */
  readonly unreachable: bigint;
}

/** What an API server without these flags uses. */
export const UPSTREAM_DEFAULT_TOLERATION_SECONDS: DefaultTolerationSeconds = {
  notReady: 300n,
  unreachable: 300n,
};

/**
 * A pod's tolerations after the admission plugin `DefaultTolerationSeconds`: for a pod created or updated, one
 * for not-ready and one for unreachable are appended where none is there. A key that is the taint's or empty,
 * with an effect that is NoExecute or empty, counts as there; operator and value are not looked at.
 */
export function admitTolerations(
  request: AdmissionRequest,
  tolerations: readonly Toleration[],
  defaults: DefaultTolerationSeconds,
): readonly Toleration[] {
  const { operation, resource, subresource } = request;
  if (resource !== 'pods' || subresource !== '') return tolerations;
  if (operation !== 'CREATE' && operation !== 'UPDATE') return tolerations;
  return [
    ...tolerations,
    ...missing(tolerations, NODE_NOT_READY, defaults.notReady),
    ...missing(tolerations, NODE_UNREACHABLE, defaults.unreachable),
  ];
}

function missing(
  tolerations: readonly Toleration[],
  key: string,
  tolerationSeconds: bigint,
): readonly Toleration[] {
  const there = tolerations.some(
    (toleration) =>
      (!toleration.key || toleration.key === key) &&
      (!toleration.effect || toleration.effect === 'NoExecute'),
  );
  return there ? [] : [{ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }];
}
