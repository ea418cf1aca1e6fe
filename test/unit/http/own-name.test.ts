import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { isInReserve } from '#shared/http/descriptors.ts';
import { isOwnName } from '#shared/http/own-name.ts';

test('accepts addresses, hosts without a domain, cluster services, and configured names', () => {
  for (const host of [
    ...[
      '127.0.0.1',
      '127.0.0.1:8080',
      '10.1.2.3:8080',
      '[::1]:8080',
      '[fd00::1]',
      'localhost',
      'LOCALHOST:1',
    ],
    ...['taintward:8080', 'taintward.ops.svc', 'taintward.ops.svc:8080', 'taintward.ops.svc.cluster.local.'],
    'probes.example.com:8080',
  ]) {
    assert.ok(isOwnName(host, ['probes.example.com']), host);
  }
});

test('rejects any other name, whatever its prefix or suffix', () => {
  for (const host of [
    ...[
      '',
      ':',
      ':8080',
      'evil.example',
      'evil.example:8080',
      '127.0.0.1.evil.example',
      'localhost.evil.example',
    ],
    ...[
      'evil.svc.example',
      'svc.example',
      '[evil.example]',
      '[127.0.0.1]',
      '127.0.0.1:80@evil.example',
      'a b',
    ],
    ...['localhost:x', 'localhost/', 'probes.example.com.evil.example'],
  ]) {
    assert.ok(!isOwnName(host, ['probes.example.com']), host);
  }
});

test('reserves the last file descriptors of the process', {
  skip: process.platform !== 'linux' && 'only Linux counts descriptors so',
}, () => {
  const withDescriptor = (fd: number) => ({ _handle: { fd } }) as unknown as Socket;
  assert.equal(isInReserve(withDescriptor(3)), false);
  assert.equal(isInReserve(withDescriptor(2 ** 31 - 1)), true);
});
