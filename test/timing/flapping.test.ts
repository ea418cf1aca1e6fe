import { test } from 'node:test';
import { fileStage } from '#test/cluster/rig/file-stage.ts';
import { flap } from '#test/cluster/rig/flapping.ts';

const stage = fileStage('served');

for (const [cycles, often] of [
  [1, 'once'],
  [3, 'three times'],
] as const) {
  test(`evicts exactly the due ones of 100 pods on a node that is tainted for a second, ${often}`, (t) =>
    flap(stage().cluster, cycles, t));
}
