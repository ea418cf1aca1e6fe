import { hash } from 'node:crypto';
import type * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { type ClusterName, isSameCluster } from '#shared/eviction/identity.ts';
import type { TolerationForecast } from '#shared/explain/toleration-preview.ts';
import { workloadText } from '#shared/explain/workload.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { preflight } from '#shared/kubernetes/permissions.ts';
import {
  askTolerations,
  changeTolerations,
  type TolerationsPlan,
} from '#shared/operations/ask/tolerations.ts';
import { forecastText } from '#shared/operations/ask/words.ts';
import type { ContextFleet, Fleet } from '#shared/operations/fleet/fleet.ts';
import { type LiveCluster, withCluster } from '#shared/operations/fleet/live-cluster.ts';
import { OperatorError } from '#shared/state/operator.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { Clock } from '#shared/time/clock.ts';
import { StaleActError } from './acts.ts';
import type { TolerationQuestions } from './answers.ts';
import type { listSchema } from './api.ts';

export interface TolerationsDeps {
  readonly fleet: Fleet;
  /** The operator's own context, by which alone tolerations are changed. Absent: the console changes none. */
  readonly own?: ContextFleet | undefined;
  readonly matching: MatchOptions;
  readonly clock: Clock;
}

type Planned = TolerationsPlan & { readonly live: LiveCluster; readonly refusal?: string | undefined };

/** Shows tolerations with the permissions of this process, and changes them with the operator's own. */
export function tolerationQuestions({ fleet, own, matching, clock }: TolerationsDeps): TolerationQuestions {
  /** Resolves with the cluster by the operator's own context, or with the reason why that isn't used. */
  async function ownCluster(cluster: ClusterName): Promise<LiveCluster | string> {
    if (!own)
      return 'To make the change on this page, start the console with your own credentials: taintward console --context CONTEXT.';
    const live = await own.cluster(cluster).catch(errorMessage);
    if (typeof live === 'string') return live;
    const found = await Promise.all([fleet.leases.read(cluster), live.api.uids()]).catch(errorMessage);
    if (typeof found !== 'string' && isSameCluster(found[0]?.uids, found[1])) return live;
    live.close();
    if (typeof found === 'string') return found;
    return `The cluster of ${own.where} is not ${cluster}, or cannot be identified by the UIDs of namespace kube-system and of nodes. To make the change on this page, start the console with a context of ${cluster}.`;
  }

  /** Without the operator's own access, the plan is only for the reader. */
  async function planned<T>(
    { cluster, list, pods, ...workload }: z.output<typeof listSchema>,
    use: (planned: Planned) => T | Promise<T>,
  ): Promise<T> {
    const found = await ownCluster(cluster);
    const clusters = typeof found === 'string' ? fleet : { cluster: async () => found };
    return withCluster(clusters, cluster, async (live) => {
      const question = { cluster, workload, pods, matching, ...(list && { tolerations: list }) };
      const plan = await askTolerations(live, fleet, question, { clock });
      const needed = plan.writes.slice(0, 1).map(({ path }) => patchPermission(path));
      const lacks = () => preflight(live.api, needed).then(() => undefined, errorMessage);
      const refusal = typeof found === 'string' ? found : await lacks();
      return use({ ...plan, live, refusal });
    });
  }

  return {
    tolerations: (asks) => planned(asks, ({ answer, refusal }) => ({ ...answer, ...defined({ refusal }) })),
    previewTolerations: ({ cluster, change }) =>
      planned({ cluster, ...change }, (plan) => {
        const { at, pods, effects } = plan.answer;
        const outcome = ({ before, after }: TolerationForecast) =>
          `now ${forecastText(before, at)}, with this list ${after ? forecastText(after, at) : 'scheduled to another node'}`;
        const outcomes = [...Map.groupBy(pods, outcome)].map(
          ([text, { length }]) => `Pods: ${length}, ${text}.`,
        );
        const evicted = pods.filter(({ after }) => after?.kind === 'evict' && after.at <= at);
        return {
          cluster,
          confirm: confirmed(plan),
          change: `Tolerations of ${workloadText(plan.answer)} in cluster ${cluster} are changed with the credentials of ${own?.where}: ${plan.writes.map(({ object }) => object).join(', ')}.`,
          effects: [...effects, ...outcomes],
          pods: { evictedNow: evicted.length, evictedWhenDue: 0, held: 0 },
        };
      }),
    changeTolerations: ({ cluster, change, reason }, confirm) =>
      planned({ cluster, ...change }, async (plan) => {
        if (confirmed(plan) !== confirm) throw new StaleActError();
        const lines: string[] = [];
        const print = (line: string) => void lines.push(line.trimEnd());
        await changeTolerations(plan.live, fleet, plan, { print, complain: print }, reason);
        return { message: lines.join(' ') };
      }),
  };
}

/** Returns what identifies the writes, and the objects as they were read. Throws `OperatorError` if they are refused. */
function confirmed({ answer, writes, refusal }: Planned): string {
  const { cluster, faults, obstacles, commands } = answer;
  if (refusal !== undefined || commands.length === 0)
    throw new OperatorError(refusal ?? [...faults, ...obstacles, 'Nothing is changed.'].join(' '));
  return hash('sha256', JSON.stringify([cluster, writes]), 'base64url');
}

function patchPermission(path: string): Permission {
  const [name = '', resource = '', namespace = '', , , group = ''] = path.split('/').toReversed();
  return { verb: 'patch', resource, group: group === 'api' ? '' : group, namespace, name };
}
