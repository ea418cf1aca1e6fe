import type { PodSpec } from './core-kinds.ts';
import type { StatusCause } from './status.ts';

/**
 * Returns the spec of a pod, or of a workload's template, with the real server's defaults. Upstream: `SetDefaults_PodSpec`,
 * `SetDefaults_Container`.
 */
export const withPodDefaults = (spec: PodSpec): PodSpec => ({
  restartPolicy: 'Always',
  terminationGracePeriodSeconds: 30,
  dnsPolicy: 'ClusterFirst',
  schedulerName: 'default-scheduler',
  securityContext: {},
  ...spec,
  containers: spec.containers.map((container) => ({
    imagePullPolicy: pullPolicy(container.image ?? ''),
    resources: {},
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    ...container,
    ...(container.ports === undefined
      ? {}
      : { ports: container.ports.map((port) => ({ protocol: 'TCP', ...port })) }),
  })),
});

/** Returns the default pull policy of an image. An image without a tag has the tag `latest`. */
function pullPolicy(image: string): string {
  const [, tag = 'latest'] = /:(?<tag>[^/:@]+)(?:@.*)?$/.exec(image) ?? [];
  return tag === 'latest' && !image.includes('@') ? 'Always' : 'IfNotPresent';
}

/** Returns the faults of the containers at `path`; empty when they are acceptable. */
export const containerCauses = (path: string, { containers }: PodSpec): readonly StatusCause[] =>
  containers.length === 0
    ? [required(`${path}.containers`)]
    : containers.flatMap(({ name, image }, index) => [
        ...(name === '' ? [required(`${path}.containers[${index}].name`)] : []),
        ...(image === undefined || image === '' ? [required(`${path}.containers[${index}].image`)] : []),
      ]);

const required = (field: string): StatusCause => ({
  reason: 'FieldValueRequired',
  message: 'Required value',
  field,
});
