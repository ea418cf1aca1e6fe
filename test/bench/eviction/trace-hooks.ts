/*
 * Preloaded into the service's process: notes when requests and waits begin and end, and writes them to the file
 * `TRACE_FILE` when the process ends.
 */

import { writeFileSync } from 'node:fs';
import { NodeReader } from '#shared/engine/evict/node-reader.ts';
import { type Call, callText } from '#shared/kubernetes/http/call.ts';
import { PrioritySemaphore } from '#shared/kubernetes/http/priority-semaphore.ts';
import { Transport } from '#shared/kubernetes/http/transport.ts';
import { ObjectStore } from '#shared/state/objects/object-store.ts';
import type { Span } from './trace.ts';

type Method = (...args: unknown[]) => Promise<unknown>;

const spans: Span[] = [];
const now = () => performance.timeOrigin + performance.now();

function begin(name: string): () => void {
  const span: { -readonly [K in keyof Span]: Span[K] } = { name, begin: now(), end: Infinity };
  spans.push(span);
  return () => {
    span.end = now();
  };
}

function replace(prototype: object, method: string, by: (original: Method) => Method): void {
  Reflect.set(prototype, method, by(Reflect.get(prototype, method)));
}

/** Notes each call of a method, from its begin until it settles. */
const note = (prototype: object, method: string, nameOf: (argument: unknown) => string): void =>
  replace(
    prototype,
    method,
    (original) =>
      function (this: unknown, ...args) {
        const end = begin(nameOf(args[0]));
        return original.apply(this, args).finally(end);
      },
  );

/** The request that asks for its turn now. */
let request = '';
const requestName = (argument: unknown): string => {
  const { object: _object, ...call } = argument as Call;
  request = callText(call);
  return request;
};
for (const method of ['read', 'readItems', 'perform', 'readList'])
  note(Transport.prototype, method, requestName);
replace(
  PrioritySemaphore.prototype,
  'run',
  (original) =>
    function (this: unknown, work, ...rest) {
      const end = begin(`wait for a turn: ${request}`);
      const inTurn = () => {
        end();
        return (work as Method)();
      };
      return original.call(this, inTurn, ...rest);
    },
);
note(NodeReader.prototype, 'recent', () => 'wait for a look at the node');
note(ObjectStore.prototype, 'load', () => 'read the store');
note(ObjectStore.prototype, 'commit', () => 'write the store');

process.once('exit', () => writeFileSync(process.env['TRACE_FILE'] ?? '', JSON.stringify(spans)));
