/**
 * Durations, sizes, and percentages in guides that none of our constants decides: examples, results of tests, the
 * reader's time, and facts of Kubernetes and AWS. A `second` thing is listed, too.
 */
export const FOREIGN: Readonly<Record<string, readonly string[]>> = {
  'README.md': ['in a second terminal', 'the rest in ten minutes'],
  'docs/how-to/install-in-cluster.md': ['| Events on pods | replicas | themselves, after an hour'],
  'docs/how-to/install-on-aws.md': [
    'deleted queue again after [a minute]',
    'may wait for a quarter of an hour',
  ],
  'docs/how-to/investigate-evictions.md': ['`[0] 30 s`'],
  'docs/how-to/migrate-a-deployment.md': ['Create a second installation'],
  'docs/how-to/move-to-enforce.md': ['in six steps, within a day'],
  'docs/how-to/recover.md': ['every second of the last 35 days'],
  'docs/how-to/replace-built-in-controller.md': [
    'on one node every ten seconds',
    'tolerates the NoExecute taint for 300 s is evicted 300 s after',
    "The service's clock is 20 s or two minutes ahead",
    'at a heartbeat timeout of 30 s: 34.7 s.',
    "within 0.1 s of the policy's deadline",
  ],
  'docs/how-to/runbooks.md': [
    'CPU utilization once a minute',
    'The usual delay is under a second',
    'Records that are a day old are lost',
  ],
  'docs/how-to/uninstall.md': ['it may take half an hour'],
};
