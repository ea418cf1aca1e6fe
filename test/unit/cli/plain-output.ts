import type { CliDeps } from '#functions/cli/command.ts';

/**
 * The dependencies of commands on the outside world: output without color or progress, and `watch` with a single
 * refresh. `exitCode` is the code that the command set, or 0.
 */
export function plainOutput() {
  const state = { printed: '', complained: '', exitCode: 0 };
  const deps: Pick<CliDeps, 'print' | 'complain' | 'paint' | 'progress' | 'watch' | 'exitWith'> = {
    print: (text) => {
      state.printed += text;
    },
    complain: (text) => {
      state.complained += text;
    },
    paint: (_, text) => text,
    progress: () => undefined,
    // The test needs a single refresh.
    watch: async (render) => {
      state.printed += await render();
    },
    exitWith: (code) => {
      state.exitCode = code;
    },
  };
  return { state, deps };
}
