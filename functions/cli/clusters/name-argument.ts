import { Argument, InvalidArgumentError } from 'commander';
import { clusterNameSchema } from '#shared/clusters/cluster-name.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { CliError } from '../cli-error.ts';

/** The cluster a command is about. */
export const nameArgument = (): Argument =>
  new Argument('<name>', "the cluster's name in the fleet").argParser((text: string): ClusterName => {
    const { data, error } = clusterNameSchema.safeParse(text);
    if (data === undefined) throw new InvalidArgumentError(`It ${error.issues[0]?.message}.`);
    return data;
  });

export const noSuchCluster = (name: ClusterName): CliError =>
  new CliError(`There is no cluster ${name}: taintward clusters list shows those there are.`);
