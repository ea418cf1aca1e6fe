const http = process.getBuiltinModule('node:http');

/**
 * What a bundle has in place of `node:http`. An `import` of that reads each of its exports, and for `WebSocket` among them Node loads all of
 * `fetch`, which nothing here needs: a tenth of a function's cold start.
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
