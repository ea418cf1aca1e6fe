import type { ServerResponse } from 'node:http';
import { stringifyInt64Json } from '#shared/kubernetes/int64-json.ts';

/** Answers with a JSON document. */
export function sendJson(response: ServerResponse, code: number, body: object): void {
  const text = stringifyInt64Json(body);
  response
    .writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}
