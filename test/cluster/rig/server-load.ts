import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import type { Connection } from '#shared/kubernetes/http/connection.ts';

const WRITES = ['create', 'update', 'delete'];
/** A line of the format of Prometheus: `name{labels} value`. */
const LINE = /^(?<name>\w+)\{(?<labels>.*)\} (?<value>\S+)$/;

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What an API server did since it started, as its own metrics say. */
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

  /** Requests to etcd that wrote something, of one resource or of all. */
  etcdWrites(resource?: string): number {
    return this.#sum(
      'etcd_request_duration_seconds_count',
      (labels) =>
        WRITES.includes(labels['operation'] ?? '') &&
        (resource === undefined || labels['resource'] === resource),
    );
  }

  /** Requests to etcd, of one API group or all. */
  etcdRequests(group?: string): number {
    return this.#sum(
      'etcd_request_duration_seconds_count',
      (labels) => group === undefined || labels['group'] === group,
    );
  }

  /** Requests that a FlowSchema let through. */
  dispatched(flowSchema: string): number {
    return this.#sum(
      'apiserver_flowcontrol_dispatched_requests_total',
      (labels) => labels['flow_schema'] === flowSchema,
    );
  }

  /** Bytes that the bodies of those had that wrote objects of a resource, and how many they were. */
  bodies(resource: string): { readonly bytes: number; readonly count: number } {
    const of = (name: string) =>
      this.#sum(`apiserver_request_body_size_bytes_${name}`, (labels) => labels['resource'] === resource);
    return { bytes: of('sum'), count: of('count') };
  }

  #sum(name: string, matches: (labels: Sample['labels']) => boolean): number {
    return this.#samples
      .filter((sample) => sample.name === name && matches(sample.labels))
      .reduce((sum, { value }) => sum + value, 0);
  }
}
