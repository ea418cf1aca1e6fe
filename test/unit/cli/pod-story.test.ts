import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podStoryText } from '#functions/cli/pod-story.ts';
import type { JobOutcome } from '#shared/explain/job.ts';
import { known } from '#shared/explain/known.ts';
import { explainPod, type PodCase } from '#shared/explain/pod.ts';
import { aCase, aPod, since } from '#test/unit/explain/builders.ts';

/** Returns the first line about what follows the eviction of a pod with this owner. */
function after(kind: string, fields: Partial<PodCase> = {}): string | undefined {
  const pod = known(aPod({ owner: { kind, name: 'it' } }));
  const story = {
    headline: '',
    ...explainPod(aCase([since(80)], { pod, ...fields })),
    history: [],
    warnings: [],
  };
  const text = podStoryText(story, { wide: false, paint: (_style, part) => part });
  return /After the eviction\n {2}(.*)/.exec(text)?.[1];
}

const withJob = (job: JobOutcome): string | undefined =>
  after('Job', {
    end: { job },
    workload: known({ namespace: 'shop', kind: 'CronJob', name: 'nightly' }),
  });

test('explains what a Job does after the eviction', () => {
  const reason = 'failures: 1, backoffLimit: 0';
  assert.equal(withJob({ kind: 'job-fails', reason }), `Job it fails (${reason})`);
  assert.equal(
    withJob({ kind: 'index-fails', reason }),
    `Job it fails when its other indexes end (${reason})`,
  );
  assert.match(
    withJob({ kind: 'replaced', reason }) ?? '',
    /^Job it creates a replacement \(failures: 1, backoffLimit: 0\), and .*, repeatedly, until the Job fails$/,
  );
  assert.match(
    withJob({ kind: 'not-counted', reason }) ?? '',
    /^Job it creates a replacement and counts no failure .*, repeatedly$/,
  );
  assert.match(
    withJob({ kind: 'unknown' }) ?? '',
    /^Job it creates a replacement or fails: its limits are unknown/,
  );
});

test('explains that a finished pod needs no replacement', () => {
  assert.equal(
    after('ReplicaSet', { end: { finished: true } }),
    'the pod has finished: only its object and its logs are deleted',
  );
});

test('explains when a StatefulSet, a DaemonSet, and the kubelet recreate a pod', () => {
  const taints = [
    { key: 'a', effect: 'NoExecute' },
    { key: 'x', effect: 'NoSchedule' },
  ];
  const node = known({ taints });
  assert.match(
    after('StatefulSet') ?? '',
    /^StatefulSet it creates a replacement once this pod has ended, and /,
  );
  assert.equal(
    after('DaemonSet', { node }),
    'DaemonSet it creates no replacement on n1 as long as it has x:NoSchedule',
  );
  assert.equal(
    after('Node', { node }),
    'it is a static pod: only its mirror pod is deleted, and the kubelet of n1 recreates it',
  );
});
