import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseOptions } from '#functions/service/options.ts';

const consolePort = (...argv: readonly string[]) => parseOptions(argv).consolePort;

describe('the console', () => {
  test('is served on any free port, for the simulated cluster and for real ones', () => {
    assert.equal(consolePort(), 0);
    assert.equal(consolePort('--context', 'prod'), 0);
  });

  test('is served on the requested port', () => {
    assert.equal(consolePort('--console-port', '8443'), 8443);
  });

  test('is not served with --no-console', () => {
    assert.equal(consolePort('--no-console'), undefined);
    assert.equal(consolePort('--no-console', '--console-port', '8443'), undefined);
  });

  test("is not served in a cluster, because nobody can open a pod's loopback interface", () => {
    assert.equal(consolePort('--in-cluster'), undefined);
    assert.equal(consolePort('--in-cluster', '--console-port', '8443'), undefined);
    assert.equal(consolePort('--in-cluster', '--context', 'prod'), undefined);
  });
});

describe('the command line', () => {
  test('observes a simulated cluster by default and serves probes on the loopback interface only', () => {
    const { contexts, enforce, policyFile, inCluster, host, port, comparisonOperators, log } = parseOptions(
      [],
    );
    assert.deepEqual(
      { contexts, enforce, policyFile, inCluster, host, port, comparisonOperators, log },
      {
        contexts: [],
        enforce: false,
        policyFile: undefined,
        inCluster: undefined,
        host: '127.0.0.1',
        port: 0,
        comparisonOperators: false,
        log: 'text',
      },
    );
  });

  test('accepts clusters, a policy, and a state directory', () => {
    const found = parseOptions([
      '--context',
      'a',
      '--context',
      'b',
      '--policy',
      'p.yaml',
      '--state-dir',
      's',
      '--enforce',
    ]);
    assert.deepEqual(
      [found.contexts, found.policyFile, found.stateDir, found.enforce],
      [['a', 'b'], 'p.yaml', 's', true],
    );
  });

  test('accepts --state as an alias of --state-dir', () => {
    assert.equal(parseOptions(['--state', 's']).stateDir, 's');
    assert.equal(parseOptions([]).stateDir, '.taintward');
  });

  test("accepts the namespace of a replica's state", () => {
    const { inCluster } = parseOptions(['--in-cluster', '--namespace', 'evictions']);
    assert.deepEqual(inCluster, { namespace: 'evictions' });
  });
});
