import { type Command, Option } from 'commander';
import type { Preview } from '#shared/operations/acts/preview.ts';
import { UsageError } from '#shared/operations/fleet/fleet.ts';
import type { PendingEviction } from '#shared/operations/look/pending.ts';
import type { ChangedSetting } from '#shared/state/policy-change.ts';
import type { CliDeps } from './command.ts';
import { linesText, type OutputFormat, outputOption, printShown, tableText } from './output.ts';

export interface DryRunOptions {
  readonly dryRun: boolean;
  readonly output: OutputFormat;
}

/** Adds the options of commands that change something. */
export const addDryRun = (command: Command): Command =>
  command
    .addOption(new Option('--dry-run', 'print what would change, and change nothing').default(false))
    .addOption(outputOption('output format of --dry-run'))
    .hook('preAction', () => {
      if (command.getOptionValueSource('output') === 'cli' && command.getOptionValue('dryRun') !== true)
        throw new UsageError('--output applies only to --dry-run. Remove it, or specify --dry-run.');
    });

/** Prints what a command would change. */
export function printPreviews(
  previews: readonly Preview[],
  { output }: DryRunOptions,
  deps: Pick<CliDeps, 'print' | 'paint'>,
): void {
  const data = () => previews.map(({ goes: _goes, ...preview }) => preview);
  const text = () =>
    previews.length === 0
      ? 'Dry run: nothing would change.\n'
      : `Dry run: nothing was changed. Without --dry-run:\n${previews.map(previewText).join('')}`;
  printShown({ data, text }, output, deps);
}

/** Returns a change with its effects. */
export function previewText({ change, effects, goes = [], settings = [], objects = [] }: Preview): string {
  const objectRows = objects.map(({ action, object }) => [action, object]);
  return [
    linesText([change, ...effects]),
    evictedTable(goes),
    settings.length === 0 ? '' : tableText(settingRows(settings)),
    objectRows.length === 0 ? '' : tableText([['ACTION', 'OBJECT'], ...objectRows]),
  ].join('');
}

/** Returns the table of settings that differ, with its heads. */
export const settingRows = (settings: readonly ChangedSetting[]): readonly (readonly string[])[] => [
  ['SETTING', 'CURRENT', 'NEW'],
  ...settings.map(({ setting, now, next }) => [setting, now, next]),
];

/** Returns the numbers of pods that are evicted immediately, by node and namespace. Empty: there are none. */
export function evictedTable(goes: readonly PendingEviction[]): string {
  if (goes.length === 0) return '';
  const groups = Map.groupBy(goes, ({ node, record }) => JSON.stringify([node, record.namespace]));
  const rows = [...groups].map(([key, { length }]) => [
    ...(JSON.parse(key) as readonly string[]),
    `${length}`,
  ]);
  return tableText([['NODE', 'NAMESPACE', 'PODS'], ...rows]);
}
