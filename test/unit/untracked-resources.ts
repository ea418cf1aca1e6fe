import asyncHooks, { createHook } from 'node:async_hooks';

/*
 * Loads Node's test runner without its hook on each promise, timer, and socket, which took more than half of the
 * processor time of `npm test`. The hook serves to name the test of an uncaught error, and to find the suite of a test:
 * only the latter is left. Such an error fails the process, after a line with the file whose tests ran, and
 * `node --test FILE` names the test. Import this before `node:test`.
 */

/** The type of the runner's own resources, of suites too. */
const TEST = 'Test';

asyncHooks.createHook = ({ init }) =>
  createHook({
    init: (asyncId, type, ...rest) => {
      if (type === TEST) init?.(asyncId, type, ...rest);
    },
    trackPromises: false,
  });
await import('node:test');
asyncHooks.createHook = createHook;
