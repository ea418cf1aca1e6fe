import { after, before, test } from 'node:test';
import { flap } from '#test/cluster/rig/flapping.ts';
import { Replicas } from '#test/cluster/rig/replicas.ts';

let replicas: Replicas;
before(async () => {
  replicas = await Replicas.open();
  await replicas.startLeader();
});
after(() => replicas?.close());

test('evicts exactly the due ones of 100 pods on a node that is tainted for a second, three times', (t) =>
  flap(replicas.cluster, 3, t));
