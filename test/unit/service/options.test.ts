import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';
import { parseOptions, type StartOptions, serviceOptions } from '#functions/service/options.ts';

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

  test('keeps the state in .taintward by default, and accepts --state as an alias of --state-dir', () => {
    for (const args of [['--state', 's'], ['--state=s']]) assert.equal(parseOptions(args).stateDir, 's');
    assert.equal(parseOptions([]).stateDir, '.taintward');
  });

  test("accepts the namespace of a replica's state", () => {
    const { inCluster } = parseOptions(['--in-cluster', '--namespace', 'evictions']);
    assert.deepEqual(inCluster, { namespace: 'evictions' });
  });
});

/** Each option of a start, with a value that is not its default. */
const GIVEN: Record<keyof StartOptions, readonly string[]> = {
  contexts: ['--context', 'prod'],
  kubeconfig: ['--kubeconfig', 'k'],
  inCluster: ['--in-cluster', '--namespace', 'evictions'],
  stateDir: ['--state-dir', 's'],
  host: ['--host', '10.0.0.5'],
  port: ['--port', '9000'],
  comparisonOperators: ['--comparison-operators'],
  log: ['--log', 'json'],
  enforce: ['--enforce'],
  policyFile: ['--policy', 'p.yaml'],
  historyDays: ['--history-days', '30'],
  consolePort: ['--console-port', '8443'],
};
const parsed = ({ without = [] }: { readonly without?: readonly (keyof StartOptions)[] } = {}) =>
  parseOptions(
    Object.entries(GIVEN).flatMap(([name, args]) => (without.some((each) => each === name) ? [] : args)),
  );

describe('the options of a start', () => {
  test('are all read from the command line', () => {
    const found: StartOptions = {
      contexts: ['prod'],
      kubeconfig: 'k',
      inCluster: undefined,
      stateDir: 's',
      host: '10.0.0.5',
      port: 9000,
      comparisonOperators: true,
      log: 'json',
      enforce: true,
      policyFile: 'p.yaml',
      historyDays: 30,
      consolePort: 8443,
    };
    assert.deepEqual(parsed({ without: ['inCluster'] }), found);
    assert.deepEqual(parsed({ without: ['stateDir'] }), {
      ...found,
      inCluster: { namespace: 'evictions' },
      stateDir: '.taintward',
      consolePort: undefined,
    });
  });

  test('reach the service, in a cluster and elsewhere', () => {
    for (const without of [['inCluster'], ['stateDir']] as const) {
      const { policies, ...others } = serviceOptions(parsed({ without }));
      assert.deepEqual([policies.enforce, policies.source?.owner], [true, resolve('p.yaml')]);
      assert.deepEqual(others, {
        probes: { host: '10.0.0.5', port: 9000, setBy: { host: '--host', port: '--port' } },
        matching: { comparisonOperators: true },
      });
    }
  });

  test('enforce the policies of the simulated cluster only, by default', () => {
    const enforced = (...argv: readonly string[]) => serviceOptions(parseOptions(argv)).policies.enforce;
    assert.equal(enforced(), true);
    assert.equal(enforced('--context', 'prod'), false);
    assert.equal(enforced('--in-cluster'), false);
    assert.equal(enforced('--in-cluster', '--context', 'prod'), false);
    assert.equal(enforced('--context', 'prod', '--enforce'), true);
  });
});
