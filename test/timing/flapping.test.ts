import { test } from 'node:test';
import { fileStage } from '#test/cluster/rig/file-stage.ts';
import { flap } from '#test/cluster/rig/flapping.ts';

const stage = fileStage('served');

for (const [cycles, often] of [
  [1, 'once'],
  [3, 'three times'],
] as const) {
  test(`100 pods on a node that is tainted for a second, ${often}: all that should go go, nobody else`, (t) =>
    flap(stage().cluster, cycles, t));
}
