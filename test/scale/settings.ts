import { clusterLoad } from '#functions/watch-relay/share.ts';
import { NODES_PER_MIB } from '#shared/aws/environment.ts';
import type { Constants } from './constants.ts';
import { FARGATE_SIZES, QUOTAS } from './quotas.ts';
import type { Fleet } from './scenarios.ts';

/** What is deployed, by the names of the settings, and what the account was given. */
export interface Settings {
  readonly relayCount: number;
  readonly relayCpu: number;
  readonly relayMemoryMiB: number;
  readonly deltaConcurrency: number;
  readonly evictConcurrency: number;
  readonly warmWrites: number;
  /** Of Lambda in the account. */
  readonly lambdaConcurrency: number;
}

/** The stack runs no more of them. */
const MOST_RELAYS = 20;
/** JavaScript runs on one core; this much of it a relay may use while nothing happens. */
const IDLE_SHARE = 1 / 3;

/** In nodes, as relays share them. */
export const loadOf = ({ clusters, nodes }: Fleet): number => clusters * clusterLoad({ nodes });

/** Cores that one of so many relays uses while nothing happens. */
export const idleCores = ({ clusters, nodes }: Fleet, relays: number, { relay }: Constants): number =>
  relay.idleCores.base + (clusters / relays) * (relay.idleCores.perCluster + nodes * relay.idleCores.perNode);

/** What the guide says to deploy for a fleet of that size, with as few relays, as large ones, as take it also while one is away. */
export function settingsFor(fleet: Fleet, constants: Constants): Settings {
  const nodes = fleet.clusters * fleet.nodes;
  const byCpu = Math.ceil(idleCores(fleet, 1, constants) / IDLE_SHARE);
  const relayCount = Math.min(MOST_RELAYS, Math.max(2, byCpu));
  const sizes = FARGATE_SIZES.flatMap(({ cpu, memory }) => memory.map((memoryMiB) => ({ cpu, memoryMiB })));
  const cores = Math.min(1, idleCores(fleet, relayCount, constants) / IDLE_SHARE);
  const size =
    sizes.find(
      ({ cpu, memoryMiB }) =>
        cpu / 1024 >= cores && memoryMiB * NODES_PER_MIB * (relayCount - 1) >= loadOf(fleet),
    ) ?? sizes[sizes.length - 1];
  const relays = { relayCount, relayCpu: size?.cpu ?? 256, relayMemoryMiB: size?.memoryMiB ?? 512 };
  if (nodes <= 5_000) return { ...relays, ...functions(20, 50), warmWrites: QUOTAS.newTableWrites.value };
  if (nodes <= 20_000) return { ...relays, ...functions(20, 200), warmWrites: QUOTAS.newTableWrites.value };
  const large = { warmWrites: 20_000, lambdaConcurrency: 2_000 };
  return { ...relays, ...functions(nodes <= 1_000_000 ? 100 : 400, 500), ...large };
}

const functions = (deltaConcurrency: number, evictConcurrency: number) => ({
  deltaConcurrency,
  evictConcurrency,
  lambdaConcurrency: QUOTAS.lambdaConcurrency.value,
});
