import {
  CoreV1Api,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  makeInformer,
} from '@kubernetes/client-node';

/* An informer of nodes and one of pods, as the library offers them. Pages, because all pods in one answer are no string. */

const [, , server = '', certificate = ''] = process.argv;
const PAGE = 500;
const config = new KubeConfig();
config.loadFromClusterAndUser(
  { name: 'synthetic', server, caData: Buffer.from(certificate).toString('base64'), skipTLSVerify: false },
  { name: 'bench', token: 'bench' },
);
const api = config.makeApiClient(CoreV1Api);

async function inPages<T extends KubernetesObject>(
  list: (page: { limit: number; _continue?: string }) => Promise<KubernetesListObject<T>>,
): Promise<KubernetesListObject<T>> {
  let page = await list({ limit: PAGE });
  const items = [...page.items];
  while (page.metadata?._continue) {
    page = await list({ limit: PAGE, _continue: page.metadata._continue });
    for (const item of page.items) items.push(item);
  }
  page.items = items;
  return page;
}

const nodes = makeInformer(config, '/api/v1/nodes', () => inPages((page) => api.listNode(page)));
const pods = makeInformer(config, '/api/v1/pods', () => inPages((page) => api.listPodForAllNamespaces(page)));
await Promise.all([nodes.start(), pods.start()]);
process.stdout.write('synced\n');
