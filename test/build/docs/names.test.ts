import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Command } from 'commander';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { pageText } from '#test/transcripts/page.ts';
import { resourcesOf } from '../cdk/stack/resources.ts';
import { synthesized, synthesizedAgent } from '../cdk/stack/synthesized.ts';

const pages = ['README.md', ...globSync('**/*.md', { cwd: join(PROJECT_DIR, 'docs') })];

/** Returns what a pattern's first group finds in the pages, and where. */
const found = (pattern: RegExp): readonly (readonly [name: string, page: string])[] =>
  pages.flatMap((page) =>
    [...pageText(page).matchAll(pattern)].map(
      ([, name = '']) => [name.replaceAll(/\s+/g, ' '), page] as const,
    ),
  );

/** Properties with the name of a resource. */
const NAMES: Readonly<Record<string, string>> = {
  'AWS::DynamoDB::Table': 'TableName',
  'AWS::ECS::Cluster': 'ClusterName',
  'AWS::ECS::TaskDefinition': 'Family',
  'AWS::Lambda::Function': 'FunctionName',
  'AWS::Logs::LogGroup': 'LogGroupName',
  'AWS::SQS::Queue': 'QueueName',
  'AWS::Scheduler::ScheduleGroup': 'Name',
};

test('log groups, queues, functions, and other resources of the stack that pages name are in its template', () => {
  const template = synthesized();
  const names = new Set(
    Object.entries(NAMES).flatMap(([type, property]) =>
      [...resourcesOf(template, type).values()].map((properties) => properties[property]),
    ),
  );
  // The target of a restore.
  names.add('taintward-restored');
  const named = [
    ...found(/(\/(?:aws\/lambda|ecs)\/[\w-]+)(?![\w*-])/g),
    ...found(/--(?:function|queue|table|group|service)-name[ =]"?(taintward[\w.-]*\w)/g),
    ...found(/--(?:cluster|services|task-definition)[ =]"?(taintward[\w.-]*\w)/g),
    ...found(/\b(taintward-(?:evictions|expiry|heartbeat|node-delta|pod-delta)[\w-]*(?:\.fifo)?)/g),
  ];
  assert.ok(named.length > 50);
  // NAME stands for each function.
  const missing = named.filter(([name]) => !names.has(name.replace(/NAME$/, 'evict')));
  assert.deepEqual(missing, []);
});

test('alarms that pages name are in the templates', () => {
  const agents = { 'taintward:agents': { 'edge-1': { cluster: 'edge' } } };
  const names = ['AWS::CloudWatch::Alarm', 'AWS::CloudWatch::CompositeAlarm']
    .flatMap((type) =>
      [synthesized(), synthesizedAgent('edge-1', agents)].flatMap((each) => [
        ...resourcesOf(each, type).values(),
      ]),
    )
    .map(({ AlarmName }) => String(AlarmName).replace('taintward: ', ''));
  const known = new Set([...names, ...names.map((name) => name.replace(/ \(.*/, ''))]);
  const named = [
    ...found(/taintward: ([A-Z][^`'"]*)/g),
    ...found(/\b[Aa]larms?(?: is)?((?:,? (?:and |or )?`[A-Zd][^`]*`)+)/g).flatMap(([list, page]) =>
      [...list.matchAll(/`([^`]+)`/g)].map(
        ([, name = '']) => [name.replace('taintward: ', ''), page] as const,
      ),
    ),
  ];
  assert.ok(named.length > 10);
  assert.deepEqual(
    named.filter(([name]) => !known.has(name)),
    [],
  );
});

test('commands and flags of taintward that sentences name exist', () => {
  const note = () => undefined;
  const program = createProgram({ print: note, complain: note } as unknown as CliDeps);
  const named = found(/`(?:npx )?taintward ([^`]+)`/g);
  assert.ok(named.length > 100);
  const unknown = named.filter(([text]) => {
    let command: Command = program;
    const flags = program.options.map(({ long }) => long);
    const words = text.split(' ');
    for (const word of words) {
      const next = command.commands.find((each) => each.name() === word || each.aliases().includes(word));
      if (next === undefined) continue;
      command = next;
      flags.push(...next.options.map(({ long }) => long));
    }
    const [first = ''] = words;
    const isCommand = command !== program || first.startsWith('--');
    return !isCommand || words.some((word) => /^--[a-z-]+$/.test(word) && !flags.includes(word));
  });
  assert.deepEqual(unknown, []);
});
