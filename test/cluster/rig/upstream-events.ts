/*
 * Messages of the built-in controller's Events, which the service repeats word for word.
 */

export const markingDeletion = (namespace: string, pod: string): string =>
  `Marking for deletion Pod ${namespace}/${pod}`;

export const cancellingDeletion = (namespace: string, pod: string): string =>
  `Cancelling deletion of Pod ${namespace}/${pod}`;
