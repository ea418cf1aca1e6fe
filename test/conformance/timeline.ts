import { z } from 'zod';
import { matchOptions, taint, toleration } from './case-fields.ts';

/** Seconds since the start. */
const seconds = z.number().nonnegative();
const name = z.string().min(1);
/** The time of a change, and a resource version that grows over the whole case. */
const happened = { t: seconds, rv: z.int().nonnegative() };

const nodeEvent = z.discriminatedUnion('op', [
  /** `taints`: the full list. */
  z.object({ ...happened, kind: z.literal('node'), op: z.literal('upsert'), name, taints: z.array(taint) }),
  z.object({ ...happened, kind: z.literal('node'), op: z.literal('delete'), name }),
]);

const podEvent = z.discriminatedUnion('op', [
  z.object({
    ...happened,
    kind: z.literal('pod'),
    op: z.literal('upsert'),
    namespace: name,
    name,
    /** Another UID under the same namespace/name: the old pod no longer exists, even when no delete was seen. */
    uid: name,
    /** "": unscheduled. */
    node: z.string().default(''),
    /** The full list. */
    tolerations: z.array(toleration),
  }),
  z.object({ ...happened, kind: z.literal('pod'), op: z.literal('delete'), namespace: name, name }),
]);

/** A stopped service sees nothing and does nothing; on start it lists everything. */
const controllerEvent = z.object({
  ...happened,
  kind: z.literal('controller'),
  op: z.enum(['restart', 'stop', 'start']),
});

/** The next `count` pod DELETE calls are answered with 500. */
const apiEvent = z.object({
  ...happened,
  kind: z.literal('api'),
  op: z.literal('failDeletes'),
  count: z.int().positive(),
});

const timelineEvent = z.discriminatedUnion('kind', [nodeEvent, podEvent, controllerEvent, apiEvent]);
export type TimelineEvent = z.output<typeof timelineEvent>;

const timelineFields = {
  /** The events in the order in which they happened. */
  events: z.array(timelineEvent),
  /** The end of the observation. */
  until: seconds,
  options: matchOptions,
  /**
   * Indexes into `events`, in the order in which the messages reach the handlers, duplicates included; each at
   * the larger of its own `t` and the time of the one before. Absent: in order, once each.
   */
  delivery: z.array(z.int().nonnegative()).exactOptional(),
};

/** The timeline to play. */
const timeline = z.object(timelineFields);
export type Timeline = z.output<typeof timeline>;

const expectation = z.object({
  deletions: z.array(z.object({ uid: z.string(), t: seconds, within: seconds.exactOptional() })),
  cancellations: z.array(
    z.object({
      /** `namespace/name` */
      pod: z.string(),
      t: seconds,
      because: z.enum(['taint-removed', 'tolerated-forever', 'pod-gone']),
      uid: z.string().exactOptional(),
    }),
  ),
});
export type Expectation = z.output<typeof expectation>;

/** A published case: a timeline, and its expected result. */
export const timelineCase = z
  .object({
    ...timelineFields,
    id: z.string(),
    expect: expectation,
    /** All cancellations may be absent or differ. */
    cancellationsOptional: z.boolean().default(false),
  })
  .refine(({ events, delivery }) => delivery?.every((index) => index < events.length) ?? true, {
    path: ['delivery'],
    message: 'must hold indexes into events',
  });
export type TimelineCase = z.output<typeof timelineCase>;

/** The result of a timeline; times are seconds since the start. */
export interface Played {
  /** Successful DELETE calls, in order. */
  readonly deletions: readonly { readonly uid: string; readonly t: number }[];
  readonly cancellations: readonly {
    /** `namespace/name` */
    readonly pod: string;
    readonly t: number;
    readonly because: string;
    readonly uid: string;
  }[];
  /** One line for each DELETE that reached another pod than the intended one. */
  readonly wrongUid: readonly string[];
}
