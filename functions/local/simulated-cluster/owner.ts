import type { ApiObject } from './objects.ts';

/** The workload, or the like, that made an object and replaces it when it goes. */
export const controllerOf = ({ metadata }: ApiObject) =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);
