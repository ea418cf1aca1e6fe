import type { Act } from '#shared/operations/acts/act.ts';
import { actState, type Performed, performAct, previewAct } from '#shared/operations/acts/perform.ts';
import type { EvictionPreview } from '#shared/operations/acts/preview.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { type CliDeps, CliError } from './command.ts';
import { type DryRunOptions, printPreviews } from './dry-run.ts';
import { linesText } from './output.ts';

export interface CliAct {
  readonly act: Act;
  /** True: the act is done before anything else is read, because it may be urgent. No effects are shown. */
  readonly isUrgent?: true;
  readonly hint?: (performed: Performed) => string;
  /** Sentences after the effects. */
  readonly after?: readonly string[];
}

/**
 * Does acts in their order, and prints each with its effects. With `--dry-run`, prints only previews. A cluster whose act
 * fails keeps no other cluster from being stopped: the errors follow at the end.
 */
export async function doActs(
  acts: readonly CliAct[],
  fleet: Fleet,
  options: DryRunOptions,
  deps: Pick<CliDeps, 'clock' | 'print' | 'paint'>,
): Promise<void> {
  if (options.dryRun) {
    printPreviews(await previewsOf(acts, fleet, deps), options, deps);
    return;
  }
  const errors: Error[] = [];
  for (const each of acts) await doAct(each, fleet, deps).catch((error: Error) => errors.push(error));
  const [first, ...others] = errors;
  if (others.length > 0) throw new CliError(errors.map(({ message }) => message).join(' '));
  if (first) throw first;
}

async function doAct(
  { act, isUrgent, hint, after = [] }: CliAct,
  fleet: Fleet,
  deps: Pick<CliDeps, 'clock' | 'print' | 'paint'>,
): Promise<void> {
  const state = isUrgent ? undefined : await actState(act, fleet, deps.clock.now());
  const effects = state ? effectsOf(act, await previewAct(act, state, fleet)) : [];
  const performed = await performAct(act, state ?? { pending: [], at: 0 }, fleet);
  const next = hint ? ` ${hint(performed)}` : '';
  deps.print(linesText([`${performed.message}${next}`, ...effects, ...after]));
}

/** Returns the effects that acts would have. Rejects if one of the acts would. */
export async function previewsOf(
  acts: readonly CliAct[],
  fleet: Fleet,
  { clock }: Pick<CliDeps, 'clock'>,
): Promise<readonly EvictionPreview[]> {
  const previews: EvictionPreview[] = [];
  for (const { act, after = [] } of acts) {
    const preview = await previewAct(act, await actState(act, fleet, clock.now()), fleet);
    previews.push({ ...preview, effects: [...preview.effects, ...after] });
  }
  return previews;
}

/** A hold is often set before its pods have deadlines. */
const effectsOf = ({ kind }: Act, { effects, pods }: EvictionPreview): readonly string[] =>
  kind === 'hold' && pods.held === 0 ? [] : effects;
