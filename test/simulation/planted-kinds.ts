import { HEARTBEAT_MS } from '#shared/engine/watch/takeover-heartbeat.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { HistoryKind, Play } from './history-kinds.ts';
import type { Area } from './planted-defects.ts';

/** A defect that shows in histories of another kind than those of the whole service. */
export interface PlantedKind {
  readonly area: Area;
  readonly kind: HistoryKind;
  /** Loads the function that plays such a history with the defect. */
  readonly play: () => Promise<Play>;
}

export const PLANTED_KINDS: Readonly<Record<string, PlantedKind>> = {
  'a delete is hung up on whose answer takes long': {
    area: 'adapters',
    kind: 'sockets',
    play: async () => {
      const { playSockets, REAL } = await import('./socket-history.ts');
      return (seed) =>
        playSockets(seed, (access, clock) => {
          let api = REAL(access, clock);
          const deletePod: KubernetesApi['deletePod'] = async (...args) => {
            const sending = api;
            const tooLate = setTimeout(() => {
              sending.close();
              if (api === sending) api = REAL(access, clock);
            }, 250);
            await sending.deletePod(...args).finally(() => clearTimeout(tooLate));
          };
          return new Proxy(api, {
            get: (_first, name) => {
              if (name === 'deletePod') return deletePod;
              const member: unknown = Reflect.get(api, name, api);
              return typeof member === 'function' ? member.bind(api) : member;
            },
          });
        });
    },
  },
  'whoever has the lease says that somebody evicts': {
    area: 'relay',
    kind: 'takeovers',
    play: async () => {
      const { playTakeover } = await import('./takeover-history.ts');
      return (seed) =>
        playTakeover(seed, {
          api: (api, clock) => {
            clock.setInterval(HEARTBEAT_MS, async () => {
              const found = await api.getTakeover().catch(() => undefined);
              if (found) await api.renewTakeover(found, clock.now()).catch(() => undefined);
            });
            return api;
          },
        });
    },
  },
};
