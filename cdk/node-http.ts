const http = process.getBuiltinModule('node:http');

/**
 * The replacement of `node:http` in a bundle. An `import` of `node:http` reads each of its exports. For the export `WebSocket`,
 * Node.js loads all of `fetch`, which no code here needs: a tenth of a function's cold start.
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
