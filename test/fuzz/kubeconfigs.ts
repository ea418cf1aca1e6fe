import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { dump } from 'js-yaml';
import { AccessError } from '#shared/access/access-error.ts';
import type { AwsClients } from '#shared/access/aws-clients.ts';
import { kubeconfigSecretConnection } from '#shared/access/kubeconfig-secret-connection.ts';
import { chosenClusters } from '#shared/engine/clusters/chosen-clusters.ts';
import { contextConnection } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import {
  currentContext,
  KubeconfigError,
  mergeKubeconfigs,
  parseKubeconfig,
  resolveContext,
} from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { garbage, sameMeaning, spoilt, torn } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { must, refusal, SECRET } from './refusal.ts';

const PEM = Buffer.from(`-----BEGIN CERTIFICATE-----\n${SECRET}\n-----END CERTIFICATE-----\n`).toString(
  'base64',
);

const SAMPLES = [
  {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'prod',
    preferences: {},
    clusters: [
      {
        name: 'prod',
        cluster: {
          server: 'https://prod.example.com:6443',
          'certificate-authority-data': PEM,
          'tls-server-name': 'prod',
          'proxy-url': `http://user:${SECRET}@proxy.example.com:3128`,
          extensions: [{ name: 'x', extension: { provider: 'kind' } }],
        },
      },
    ],
    users: [{ name: 'anna', user: { token: SECRET } }],
    contexts: [{ name: 'prod', context: { cluster: 'prod', user: 'anna', namespace: 'default' } }],
  },
  {
    'current-context': 'edge',
    clusters: [{ name: 'edge', cluster: { server: 'https://10.0.0.1', 'insecure-skip-tls-verify': true } }],
    users: [
      { name: 'cert', user: { 'client-certificate-data': PEM, 'client-key-data': PEM } },
      { name: 'basic', user: { username: 'anna', password: SECRET } },
      { name: 'file', user: { tokenFile: '/nowhere/token' } },
      { name: 'null', user: null },
    ],
    contexts: [
      { name: 'edge', context: { cluster: 'edge', user: 'cert' } },
      { name: 'basic', context: { cluster: 'edge', user: 'basic' } },
      { name: 'file', context: { cluster: 'edge', user: 'file' } },
      { name: 'null', context: { cluster: 'edge', user: 'null' } },
    ],
  },
  {
    'current-context': 'plugin',
    clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:8001' } }],
    users: [
      {
        name: 'u',
        user: {
          exec: {
            apiVersion: 'client.authentication.k8s.io/v1',
            command: '/nowhere/plugin',
            args: ['token', SECRET],
            env: [{ name: 'TOKEN', value: SECRET }],
          },
        },
      },
    ],
    contexts: [{ name: 'plugin', context: { cluster: 'c', user: 'u' } }],
  },
];

const CYCLES = [
  'a: &a [*a]\n',
  `current-context: p\nclusters: [{name: p, cluster: {server: "https://p", extensions: &x {self: *x}}}]\nusers: [{name: p, user: {token: ${SECRET}}}]\ncontexts: [{name: p, context: {cluster: p, user: p}}]\n`,
  `current-context: p\nclusters: &c [{name: p, cluster: {server: "https://p"}}]\nusers: [{name: p, user: {token: ${SECRET}, x: &u {y: *u}}}]\ncontexts: [{name: p, context: {cluster: p, user: p}}]\n`,
  `x: &a [${'v,'.repeat(1_000)}]\ny: &b [${'*a,'.repeat(1_000)}]\nz: &c [${'*b,'.repeat(1_000)}]\ncurrent-context: p\nclusters: [{name: p, cluster: {server: "https://p", extensions: *c}}]\nusers: [{name: p, user: {token: ${SECRET}}}]\ncontexts: [{name: p, context: {cluster: p, user: p}}]\n`,
];

const yaml = (json: unknown): string => dump(JSON.parse(JSON.stringify(json) ?? 'null'));

/** A secret in the place of a name would not be secret. */
const MISPLACED = new RegExp(`(?<!(?:token|password|value): |- |proxy-url: http://user:)${SECRET}`, 'g');

const ERRORS = [KubeconfigError, AccessError];
const SECRET_ARN = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:edge';

/**
 * Kubeconfigs from files and from secrets. Each context gives access to a cluster, or an error states the fault without the
 * secrets. Plugins are not run.
 */
export const kubeconfigs: Kind<string> = {
  name: 'kubeconfigs',
  open: async () => {
    const directory = mkdtempSync(join(tmpdir(), 'taintward-fuzz-'));
    const file = join(directory, 'config');
    return {
      inputs: fc.oneof(
        { weight: 1, arbitrary: fc.constantFrom(...SAMPLES).map(yaml) },
        { weight: 12, arbitrary: spoilt(SAMPLES).map(yaml) },
        { weight: 5, arbitrary: torn(SAMPLES.map(yaml)) },
        { weight: 2, arbitrary: garbage },
        { weight: 1, arbitrary: fc.constantFrom(...CYCLES) },
      ),
      feed: (text) => feed(text.replaceAll(MISPLACED, 'misplaced'), file),
      close: () => rmSync(directory, { recursive: true }),
    };
  },
};

async function feed(text: string, file: string): Promise<Outcome> {
  const outcomes = new Set<Outcome>();
  const attempt = async (work: () => unknown) => {
    try {
      await work();
      outcomes.add('accepted');
    } catch (error) {
      outcomes.add(refusal(error, ERRORS));
    }
  };
  await attempt(() => secretWay(text).requestOptions());
  writeFileSync(file, text);
  let read: ReturnType<typeof mergeKubeconfigs>;
  try {
    read = mergeKubeconfigs('it', [parseKubeconfig(text, 'it')]);
  } catch (error) {
    return refusal(error, ERRORS);
  }
  for (const name of [...read.contexts.keys(), 'missing'].slice(0, 4)) {
    await attempt(() => connect(name, file, resolveContext(read, name)));
    await attempt(() => {
      const chosen = chosenClusters({ contexts: [name], kubeconfig: file }, 'fuzz');
      for (const { api } of chosen) api.close();
    });
  }
  await attempt(() => {
    const name = currentContext(read);
    const { cluster, user } = resolveContext(read, name);
    must(sameMeaning(resolveContext(read, name), { cluster, user }), 'is another context the second time');
  });
  return outcomes.has('accepted') ? 'accepted' : 'refused';
}

async function connect(
  name: string,
  file: string,
  { user }: ReturnType<typeof resolveContext>,
): Promise<void> {
  const connection = contextConnection(name, file);
  must(connection.host !== '', 'has no address');
  // The test must not run a program that an input chooses.
  if (!user.exec && !user['auth-provider']) await connection.requestOptions();
}

const secretWay = (text: string) => {
  const aws = { secrets: () => ({ send: async () => ({ SecretString: text }) }) } as unknown as AwsClients;
  return kubeconfigSecretConnection({ kind: 'kubeconfig-secret', secretArn: SECRET_ARN }, aws, {
    now: () => 0,
  });
};
