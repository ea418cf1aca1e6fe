import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { makeBusy } from '#test/world/busy-cluster.ts';
import { commandLine, NOW } from './command-line.ts';

const COMMANDS = [
  'status prod -o json',
  'status prod',
  'pending prod -o json',
  'pending prod --stuck -o json',
  'history prod -o json',
  'doctor prod -o json',
  'stop prod --reason x --dry-run',
];

for (const command of COMMANDS) {
  test(`${command} prints the same beside a busier cluster`, async (t) => {
    const [alone, beside] = [commandLine(t), commandLine(t)];
    await makeBusy(beside, clusterName('stage'), 3, NOW);
    for (const each of [alone, beside]) await makeBusy(each, clusterName('prod'), 2, NOW);
    const printed = await alone.run(...command.split(' '));
    assert.match(printed, /prod/);
    assert.equal(await beside.run(...command.split(' ')), printed);
  });
}
