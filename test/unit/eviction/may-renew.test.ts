import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MAX_OVERDUE_MS, type Standing, whyNotRenew } from '#shared/eviction/may-renew.ts';

const WELL: Standing = {
  mode: 'enforce',
  guarded: true,
  hearing: 'live',
  keys: ['a', 'b'],
  virtualKeys: ['c', 'b', 'a'],
  overdueMs: 0,
  skewMs: -250,
};

describe('a relay may say that Taintward evicts', () => {
  const rows: readonly (readonly [when: string, given: Partial<Standing>])[] = [
    ['when all is as it ought to be', {}],
    ['while policy pauses: nobody else is to evict either', { mode: 'paused' }],
    ['when an eviction is overdue by a minute, but no more', { overdueMs: MAX_OVERDUE_MS }],
  ];
  for (const [when, given] of rows)
    test(when, () => assert.equal(whyNotRenew({ ...WELL, ...given }), undefined));
});

describe('it may not, and says why,', () => {
  const rows: readonly (readonly [when: string, given: Partial<Standing>, why: string])[] = [
    ['while policy only observes', { mode: 'observe' }, 'policy only observes: set mode to enforce'],
    [
      'when policy does not read the taints as NoExecute',
      { virtualKeys: ['b'] },
      'policy does not name a in virtualKeys',
    ],
    [
      'without a guard',
      { guarded: false },
      'policy has no guard over nodes that are down: set guard.cluster or guard.zone, not in shadow',
    ],
    ['before it knows the cluster', { hearing: 'syncing' }, 'the cluster is not fully known yet'],
    ['when it does not hear the cluster', { hearing: 'deaf' }, 'the cluster is not heard'],
    ['when an eviction is overdue', { overdueMs: 61_400 }, 'an eviction is overdue by 61 s'],
    [
      'by a clock that may be wrong',
      { skewMs: undefined },
      'it is not known yet what time the API server has',
    ],
  ];
  for (const [when, given, why] of rows)
    test(when, () => assert.equal(whyNotRenew({ ...WELL, ...given }), why));
});
