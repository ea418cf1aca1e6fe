import type { CliDeps } from '#functions/cli/command.ts';

/** Of what commands need of the world: output without colours and progress, which is looked at once. The code is where they left it, if they did. */
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
    // Once is enough.
    watch: async (look) => {
      state.printed += await look();
    },
    exitWith: (code) => {
      state.exitCode = code;
    },
  };
  return { state, deps };
}
