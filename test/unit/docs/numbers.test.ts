import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { MAX_DELAY_SECONDS } from '#shared/aws/limits.ts';
import { WORK_BACKOFF } from '#shared/engine/again.ts';
import { LOOK_MAX_AGE_MS } from '#shared/engine/evict/pass.ts';
import { CHECKED_MS, HEARTBEAT_MS, PROVEN_MS } from '#shared/engine/watch/takeover-heartbeat.ts';
import { BUDGET_RETRY_MS } from '#shared/eviction/budget.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import { DOWN_BEFORE_MS } from '#shared/eviction/gate.ts';
import { CALM_MS } from '#shared/eviction/guard.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { MAX_ASKED_MS, retryWaitMs } from '#shared/eviction/retry.ts';
import { MAX_SKEW_MS } from '#shared/eviction/skew.ts';
import { DEFAULT_LAPSE_SECONDS } from '#shared/kubernetes/takeover.ts';
import { LEASE_TTL_MS } from '#shared/state/lease.ts';
import { HISTORY_DAYS, scheduledTtl } from '#shared/state/stored.ts';
import { aRecord, NOW } from '#test/contracts/partition-builders.ts';

/*
 * Sentences of pages whose numbers come from constants. `{}` stands for a number with its unit or noun, such as
 * `four days`, in the order of the values.
 */

const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;

const waitMs = (attempts: number, how = {}): number => retryWaitMs(attempts, 1, how);
const FIRST_MS = waitMs(1);
const FIRST_UNANSWERED_MS = waitMs(1, { outOfReach: true });
const LAST_MS = waitMs(10_000);
/** The last of the attempts between which the wait is at most that of the tenth. */
const lastEarly = (how = {}): number =>
  Array.from({ length: 200 }, (_, index) => index + 1).findLast((nth) => waitMs(nth, how) <= waitMs(10)) ?? 0;
const LEFT_ALONE_MS = scheduledTtl(aRecord({ fireAt: NOW, gaveUpAt: NOW }), NOW) * 1000 - NOW;

const GUARD_PAGE = 'docs/concepts/guard.md';
const { cluster, zone, people } = DEFAULT_POLICY.guard;

const TAKEOVER_PAGE = 'docs/how-to/replace-built-in-controller.md';
const LAPSE_MS = DEFAULT_LAPSE_SECONDS * 1_000;

const SENTENCES: readonly (readonly [page: string, sentence: string, values: readonly number[]])[] = [
  [
    'docs/concepts/eviction-semantics.md',
    'retried after {}, then with growing delays: up to {} until the {} failure, later up to {}.',
    [FIRST_MS, waitMs(10), lastEarly(), LAST_MS],
  ],
  ['docs/concepts/eviction-semantics.md', '`Retry-After` is honored up to {}.', [MAX_ASKED_MS]],
  [
    'docs/concepts/eviction-semantics.md',
    'the node is tried every {} for {}, and at',
    [waitMs(10), Math.round((lastEarly({ unanswered: true }) * waitMs(10)) / 1_800_000) * 1_800_000],
  ],
  [
    'docs/concepts/eviction-semantics.md',
    '{} after its first failure an eviction fails for good',
    [DEFAULT_POLICY.giveUpAfterMs],
  ],
  ['docs/concepts/eviction-semantics.md', 'ignores the pod for {}, or until', [LEFT_ALONE_MS]],
  ['docs/concepts/eviction-semantics.md', '| more than {} for certain, with every', [MAX_SKEW_MS]],
  [
    'docs/how-to/runbooks.md',
    'retried after {} ({} without an answer)',
    [FIRST_MS, FIRST_UNANSWERED_MS / 1000],
  ],
  ['docs/how-to/runbooks.md', 'with growing delays up to every {}. Evictions', [LAST_MS]],
  ['docs/how-to/runbooks.md', '`Retry-After` is honored up to {}.', [MAX_ASKED_MS]],
  ['docs/how-to/runbooks.md', '`giveUpAfter` ({} by default)', [DEFAULT_POLICY.giveUpAfterMs]],
  ['docs/how-to/runbooks.md', 'messages are retried within {}.', [WORK_BACKOFF.longestMs]],
  [
    'docs/how-to/recover.md',
    'retried after {}, then with growing delays: every {} up to the {} failure, finally every {}.',
    [FIRST_MS, waitMs(10), lastEarly(), LAST_MS],
  ],
  ['docs/how-to/recover.md', '`Retry-After` is honored up to {}.', [MAX_ASKED_MS]],
  ['docs/how-to/recover.md', '`giveUpAfter`, {} by default', [DEFAULT_POLICY.giveUpAfterMs]],
  ['docs/how-to/recover.md', 'the next resync ({}) sends', [RESYNC_MS]],
  ['docs/how-to/recover.md', 'are ignored for {}', [LEFT_ALONE_MS]],
  ['docs/how-to/investigate-evictions.md', 'The eviction is retried every {}.', [BUDGET_RETRY_MS]],
  ['docs/concepts/other-controllers.md', 'its eviction is retried every {}.', [BUDGET_RETRY_MS]],
  ['docs/reference/policy.md', 'The eviction is retried every {},', [BUDGET_RETRY_MS]],
  ['docs/concepts/overview.md', 'After {} by default, an eviction', [DEFAULT_POLICY.giveUpAfterMs]],
  ['docs/concepts/overview.md', '**history**, kept for {}.', [HISTORY_DAYS * DAY_MS]],
  ['docs/how-to/stop-and-hold.md', 'as long as history: {} by default', [HISTORY_DAYS * DAY_MS]],
  ['docs/internals/design.md', 'for {} by default. Changes', [HISTORY_DAYS * DAY_MS]],
  ['docs/internals/design.md', 'after a gap, and every {}, so', [RESYNC_MS]],
  [
    'docs/internals/design.md',
    'Delays are 1, 2, 4, 8, and {}, then {} up to the {} failure, then 60, 120, 240, and {}.',
    [waitMs(5), waitMs(10), lastEarly(), LAST_MS],
  ],
  [
    'docs/internals/design.md',
    '{} where several calls got no answer, doubled up to {} for {}, and then up to {}.',
    [FIRST_UNANSWERED_MS, waitMs(10), lastEarly({ unanswered: true }), LAST_MS],
  ],
  ['docs/concepts/scalability.md', 'Tainted nodes are sent again every {}.', [RESYNC_MS]],
  [TAKEOVER_PAGE, 'evicts {} after Taintward', [LAPSE_MS]],
  [TAKEOVER_PAGE, 'at least {} (the heartbeat timeout', [LAPSE_MS]],
  [TAKEOVER_PAGE, 'The built-in controller evicts {} after the last proof', [LAPSE_MS]],
  [TAKEOVER_PAGE, 'renews `takeovers/live` every {},', [HEARTBEAT_MS]],
  [TAKEOVER_PAGE, 'and retries every {}. Log', [HEARTBEAT_MS]],
  [TAKEOVER_PAGE, 'and then every {}. It also', [PROVEN_MS]],
  [TAKEOVER_PAGE, 'Every {}, it repeats the first dry run', [CHECKED_MS]],
  [TAKEOVER_PAGE, 'renewed it in the last {}.', [LEASE_TTL_MS]],
  [TAKEOVER_PAGE, 'clock by {} at most.', [MAX_SKEW_MS]],
  ['docs/concepts/high-availability.md', 'unchanged for {}, by its own', [LEASE_TTL_MS]],
  ['docs/concepts/high-availability.md', 'The age must be less than {} by', [LEASE_TTL_MS]],
  ['docs/concepts/high-availability.md', 'a delete at most {} after it read', [LOOK_MAX_AGE_MS]],
  [GUARD_PAGE, 'were down for {}** before', [DOWN_BEFORE_MS]],
  [GUARD_PAGE, 'of all nodes | {} and {}, or all nodes |', [cluster?.percent ?? 0, cluster?.nodes ?? 0]],
  [GUARD_PAGE, '| {} and {} | the same, on the nodes', [zone?.percent ?? 0, zone?.nodes ?? 0]],
  [GUARD_PAGE, 'any other key within {}, and', [people?.withinMs ?? 0]],
  [GUARD_PAGE, 'of all nodes | {} and {} | evictions for taints', [people?.percent ?? 0, people?.nodes ?? 0]],
  [GUARD_PAGE, 'Tripped --> Watching: {} below half', [CALM_MS]],
  [GUARD_PAGE, 'Released --> Watching: {} of recovery', [CALM_MS]],
  [GUARD_PAGE, 'fail again within {}. It trips', [CALM_MS]],
  [GUARD_PAGE, 'is reached after {} of recovery', [CALM_MS]],
  [GUARD_PAGE, 'resets automatically** after {} with', [CALM_MS]],
  [
    'docs/concepts/faq.md',
    'If at least {}, and at least {}, are down',
    [cluster?.percent ?? 0, cluster?.nodes ?? 0],
  ],
  ['docs/concepts/other-controllers.md', 'guard holds evictions at {} of a cluster', [cluster?.percent ?? 0]],
  [
    'docs/concepts/other-controllers.md',
    'the scope trips at {} and {} within {}.',
    [people?.percent ?? 0, people?.nodes ?? 0, people?.withinMs ?? 0],
  ],
  ['docs/internals/design.md', 'Up to {}, a timer is a delayed SQS', [MAX_DELAY_SECONDS * 1_000]],
  ['docs/how-to/install-in-cluster.md', 'sends the node again within {}.', [RESYNC_MS]],
];

const WORDS = 'one two three four five six seven eight nine ten'.split(' ');
const ORDINALS = 'first second third fourth fifth sixth seventh eighth ninth tenth'.split(' ');
const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  second: 1_000,
  min: 60_000,
  minute: 60_000,
  hour: HOUR_MS,
  day: DAY_MS,
};

/** Returns the value of words such as `half an hour`, `30 s`, `60 tries`, and `tenth`; durations in ms. */
function numberOf(words: string): number {
  const isHalf = words.startsWith('half ');
  const [number = '', noun = ''] = words
    .replace(/^half /, '')
    .toLowerCase()
    .split(' ');
  const count = /^an?$/.test(number)
    ? 1
    : WORDS.includes(number)
      ? WORDS.indexOf(number) + 1
      : ORDINALS.includes(number)
        ? ORDINALS.indexOf(number) + 1
        : Number(number);
  return count * (UNITS[noun.replace(/(?<=...)s$/, '')] ?? 1) * (isHalf ? 0.5 : 1);
}

const NUMBER = String.raw`((?:half )?(?:an?|[\d.]+|${[...WORDS, ...ORDINALS].join('|')})(?:\s+(?:ms|s|min|%(?: of nodes)?|nodes|seconds?|minutes?|hours?|days?|tries)(?!\w))?)`;
const patternOf = (sentence: string): RegExp =>
  new RegExp(
    sentence
      .split('{}')
      .map((text) => RegExp.escape(text).replaceAll('\\x20', String.raw`\s+`))
      .join(NUMBER),
    'i',
  );

for (const [page, sentence, values] of SENTENCES) {
  test(`${page} states the numbers of the code: ${sentence}`, () => {
    const text = readFileSync(join(import.meta.dirname, '../../..', page), 'utf8');
    const found = patternOf(sentence).exec(text);
    assert.ok(found, `${page} lacks this sentence. Write it there, or change it in this test: ${sentence}`);
    const line = text.slice(0, found.index).split('\n').length;
    for (const [index, value] of values.entries()) {
      const words: string = `${found[index + 1]}`.replace(/\s+/g, ' ');
      assert.equal(
        numberOf(words),
        value,
        `${page}:${line} says ${words}, and the code has ${value} (durations in ms): change the page`,
      );
    }
  });
}
