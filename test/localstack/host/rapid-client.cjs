// In place of the native addon of aws-lambda-ric, which would have to be compiled: how a runtime hands in what came of an
// invocation, over HTTP. The runtime asks for its next invocation by its own HTTP client, which it has beside the addon
// (AWS_LAMBDA_NODEJS_USE_ALTERNATIVE_CLIENT_1).
'use strict';
const http = require('node:http');

const agent = new http.Agent({ keepAlive: true });

function post(path, body, headers = {}) {
  const [hostname, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':');
  const options = { agent, hostname, port, method: 'POST', path: `/2018-06-01/runtime/invocation/${path}` };
  const length = Buffer.byteLength(body);
  http
    .request({
      ...options,
      headers: { 'content-type': 'application/json', 'content-length': length, ...headers },
    })
    .on('response', (response) => response.resume())
    .on('error', () => process.exit(1))
    .end(body);
}

module.exports = {
  done: (id, body) => post(`${id}/response`, body),
  error: (id, body) => post(`${id}/error`, body),
};
