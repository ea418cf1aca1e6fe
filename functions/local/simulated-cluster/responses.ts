import type { ServerResponse } from 'node:http';
import { stringifyJson } from './objects/json.ts';

/** Answers with a JSON document. */
export function sendJson(response: ServerResponse, code: number, body: object): void {
  const text = stringifyJson(body);
  response
    .writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}
