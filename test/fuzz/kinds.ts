import { annotations } from './annotations.ts';
import { answers } from './answers.ts';
import { commandLines } from './command-lines.ts';
import { consoleRequests } from './console-requests.ts';
import { deltas } from './deltas.ts';
import { items } from './items.ts';
import type { Kind } from './kind.ts';
import { kubeconfigs } from './kubeconfigs.ts';
import { largeAnswers } from './large-answers.ts';
import { listenerBytes } from './listener-bytes.ts';
import { policies } from './policies.ts';
import { fuzz, type Report, type RunOptions } from './run.ts';

/** A kind, and a function that runs its inputs. */
export interface Fuzzed {
  readonly name: string;
  fuzz(options: RunOptions): Promise<Report>;
}

const fuzzed = <Input>(kind: Kind<Input>): Fuzzed => ({
  name: kind.name,
  fuzz: (options) => fuzz(kind, options),
});

/** All kinds of hostile input, in the order in which they run. */
export const KINDS: readonly Fuzzed[] = [
  fuzzed(deltas),
  fuzzed(items),
  fuzzed(answers),
  fuzzed(largeAnswers),
  fuzzed(policies),
  fuzzed(annotations),
  fuzzed(kubeconfigs),
  fuzzed(commandLines),
  fuzzed(consoleRequests),
  fuzzed(listenerBytes),
];
