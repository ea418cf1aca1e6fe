import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { type Ending, json, type ScriptedOptions, scriptedServer } from './scripted-server.ts';

export const NODE = nodeName('n1');
export const POD = { namespace: 'shop', name: 'web-0' };
export const UID = podUid('7d1f');
export const NOW = Date.UTC(2026, 10, 21, 11, 13, 53, 789);
/** The signal of a call that is not aborted. */
export const { signal } = new AbortController();

/** An API server's answer with the node `n1`. */
export const node = json({ metadata: { name: 'n1' } });

/** An API server that holds its answers until the test sends the node `n1`. */
export async function holdingServer(t: Ending, options: ScriptedOptions = {}) {
  const held: ServerResponse[] = [];
  const server = await scriptedServer(t, (response) => held.push(response), options);
  const answerOne = () => node(held.shift() as ServerResponse, undefined as never);
  const answerHeld = () => {
    while (held.length > 0) answerOne();
  };
  return { ...server, held, answerOne, answerHeld };
}

/** Returns the error with which a call is rejected. */
export async function rejection(call: unknown): Promise<ApiError> {
  const error = await Promise.resolve(call).then(
    () => assert.fail('should have rejected'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

/** Returns the message of a call that got no answer, or none of an API server. */
export async function unanswered(call: unknown): Promise<string> {
  const { status, message } = await rejection(call);
  assert.equal(status, 0, message);
  return message;
}

/** A line of a watch. */
export const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;
