import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import type { Connection } from '#shared/kubernetes/http/connection.ts';

const WRITES = ['create', 'update', 'delete'];
/** A line of the Prometheus text format: `name{labels} value`. */
const LINE = /^(?<name>\w+)\{(?<labels>.*)\} (?<value>\S+)$/;

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The load of an API server since its start, read from its own metrics. */
export class ServerLoad {
  readonly #samples: readonly Sample[];

  private constructor(samples: readonly Sample[]) {
    this.#samples = samples;
  }

  static async of(connection: Pick<Connection, 'requestOptions'>): Promise<ServerLoad> {
    const { server, ...access } = await connection.requestOptions();
    const [answer] = (await once(
      https.get(new URL('/metrics', server), { ...access, agent: false }),
      'response',
    )) as [IncomingMessage];
    const lines = (await text(answer)).split('\n');
    return new ServerLoad(
      lines.flatMap((line) => {
        const { name = '', labels = '', value } = LINE.exec(line)?.groups ?? {};
        const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', text = '']) => [key, text]);
        return value === undefined ? [] : [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
      }),
    );
  }

  /** Returns the number of write requests to etcd, for one resource or for all. */
  etcdWrites(resource?: string): number {
    return this.#sum(
      'etcd_request_duration_seconds_count',
      (labels) =>
        WRITES.includes(labels['operation'] ?? '') &&
        (resource === undefined || labels['resource'] === resource),
    );
  }

  /** Returns the number of requests to etcd, for one API group or for all. */
  etcdRequests(group?: string): number {
    return this.#sum(
      'etcd_request_duration_seconds_count',
      (labels) => group === undefined || labels['group'] === group,
    );
  }

  /** Returns the number of requests that a FlowSchema dispatched. */
  dispatched(flowSchema: string): number {
    return this.#sum(
      'apiserver_flowcontrol_dispatched_requests_total',
      (labels) => labels['flow_schema'] === flowSchema,
    );
  }

  /** Returns the total size of the bodies of requests that wrote objects of a resource, and the number of requests. */
  bodies(resource: string): { readonly bytes: number; readonly count: number } {
    const metric = (name: string) =>
      this.#sum(`apiserver_request_body_size_bytes_${name}`, (labels) => labels['resource'] === resource);
    return { bytes: metric('sum'), count: metric('count') };
  }

  #sum(name: string, matches: (labels: Sample['labels']) => boolean): number {
    return this.#samples
      .filter((sample) => sample.name === name && matches(sample.labels))
      .reduce((sum, { value }) => sum + value, 0);
  }
}
