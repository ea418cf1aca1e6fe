import { load, YAMLException } from 'js-yaml';
import * as z from 'zod';
import { KubeconfigError } from './kubeconfig-error.ts';

const text = z.string().optional();
/** `kubectl config` leaves null where a list is empty. */
const listOf = <T extends z.ZodType>(item: T) =>
  z
    .array(item)
    .nullish()
    .transform((items) => items ?? []);

const Cluster = z.looseObject({
  server: z.string().default(''),
  'certificate-authority': text,
  'proxy-url': text,
});

const Exec = z.looseObject({
  apiVersion: z.string().default('client.authentication.k8s.io/v1'),
  command: z.string(),
  env: listOf(z.object({ name: z.string(), value: z.string() })),
});

const User = z.looseObject({
  'client-certificate': text,
  'client-key': text,
  token: text,
  tokenFile: text,
  exec: Exec.nullish(),
});

const Context = z.looseObject({ cluster: text, user: text });

const Kubeconfig = z.looseObject({
  'current-context': text,
  clusters: listOf(z.object({ name: z.string(), cluster: Cluster })),
  users: listOf(z.object({ name: z.string(), user: User.nullish().transform((user) => user ?? {}) })),
  contexts: listOf(z.object({ name: z.string(), context: Context })),
});

/** A kubeconfig as it is written: paths as they stand there, fields that nobody here knows included. */
export type Kubeconfig = z.infer<typeof Kubeconfig>;
export type KubeconfigCluster = z.infer<typeof Cluster>;
export type KubeconfigUser = z.infer<typeof User>;
export type KubeconfigContext = z.infer<typeof Context>;

/** Reads a kubeconfig's text; `source` says in messages which one it is. Throws `KubeconfigError`. */
export function parseKubeconfig(content: string, source: string): Kubeconfig {
  const { data, error } = Kubeconfig.safeParse(parseYaml(content, source));
  if (data !== undefined) return data;
  const [issue] = error.issues;
  const field = issue?.path.join('.') || 'its top';
  throw new KubeconfigError(`The kubeconfig ${source} is wrong at ${field}: ${issue?.message}.`);
}

function parseYaml(content: string, source: string): unknown {
  try {
    return load(content);
  } catch (error) {
    // The parser's own message quotes the file, tokens and all.
    const line = error instanceof YAMLException ? error.mark?.line : undefined;
    const where = line === undefined ? '' : ` (line ${line + 1})`;
    throw new KubeconfigError(`The kubeconfig ${source} is not YAML${where}: correct or replace it.`);
  }
}
