import { realpathSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/*
 * Loaded by each Node process that the stand-in starts (`NODE_OPTIONS`). In a process with one of the project's
 * functions, it counts the chain of requests that leads to an invocation. The stand-in itself does so for direct
 * invocations alone.
 */

const { LAMBDA_TASK_ROOT } = process.env;
if (LAMBDA_TASK_ROOT) {
  const bundle = pathToFileURL(join(realpathSync(LAMBDA_TASK_ROOT), 'lambda.mjs')).href;
  const counted = new URL('counted.ts', import.meta.url).href;
  const source = [
    `import { handler as inner } from '${bundle}?counted';`,
    `import { counted } from '${counted}';`,
    'export const handler = counted(inner);',
  ].join('\n');
  registerHooks({
    load: (url, context, nextLoad) =>
      url === bundle ? { format: 'module', source, shortCircuit: true } : nextLoad(url, context),
  });
}
