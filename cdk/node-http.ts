const http = process.getBuiltinModule('node:http');

/**
 * Replaces `node:http` in a bundle: an `import` reads each export, and for `WebSocket` Node.js loads all of `fetch`, a
 * tenth of a function's cold start.
 */
export const {
  Agent,
  ClientRequest,
  createServer,
  get,
  globalAgent,
  IncomingMessage,
  maxHeaderSize,
  METHODS,
  OutgoingMessage,
  request,
  Server,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = http;

export default http;
