import type { TestContext } from 'node:test';

/**
 * The features that LocalStack's community edition lacks. MiniStack, the other stand-in, has each of these, or the
 * suite names another proof.
 */
export const LACKS = {
  scheduler: 'LocalStack keeps schedules and fires none',
  ecs: 'LocalStack has no ECS and no ECR: its stack runs no relays, so there is no task definition to read',
  eks: 'LocalStack has no EKS',
  rollback: 'a creation that fails is not rolled back on LocalStack: table, queues and functions stay',
  tap: 'LocalStack that was given sends what functions call past the suite, which cannot count it',
} as const;

/** Prefixes of pages' commands that LocalStack does not support, and of commands that use their results. */
export const UNKNOWN_COMMANDS = [
  // LocalStack has no point-in-time recovery.
  'aws dynamodb restore-table-to-point-in-time ',
  'aws dynamodb wait table-exists --table-name taintward-restored',
  'npx taintward --table taintward-restored ',
  'copy taintward-restored ',
  // LocalStack has no policies of tables.
  'aws dynamodb delete-resource-policy ',
  // Nothing was restored, and a destroyed stack takes its table along: LocalStack does not support
  // RetainExceptOnCreate.
  'aws dynamodb delete-table --table-name taintward',
] as const;

/**
 * Reports whether LocalStack answers at an endpoint. MiniStack answers LocalStack's health check, but not this path.
 */
export async function isLocalStack(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/_localstack/info`).catch(() => undefined);
  return answer?.ok ?? false;
}

/** Skips a test on LocalStack, with the reason, and reports whether it did. */
export async function skippedOnLocalStack(
  t: TestContext,
  url: string,
  lacks: keyof typeof LACKS,
): Promise<boolean> {
  if (!(await isLocalStack(url))) return false;
  t.skip(LACKS[lacks]);
  return true;
}
