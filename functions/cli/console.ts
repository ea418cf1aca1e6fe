import { type Command, InvalidArgumentError, Option } from 'commander';
import { LINK_TERMS } from '#shared/console/session.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import type { LiveChoice } from '#shared/operations/fleet/fleet-choice.ts';
import { contextAccess, contextFleet } from '#shared/operations/fleet/open-fleet.ts';
import { pause } from '#shared/time/pause.ts';
import { onStopSignal } from '#shared/time/stopping.ts';
import { type Browser, startBrowser } from './browser.ts';
import { type CliDeps, CliError, comparisonOption, kubeconfigOption } from './command.ts';
import { linesText, withExamples } from './output.ts';
import { withFleet } from './with-fleet.ts';

interface ConsoleOptions extends Pick<LiveChoice, 'context' | 'kubeconfig'> {
  readonly host: string;
  readonly port: number;
  readonly open: boolean;
  readonly comparisonOperators: boolean;
}

export interface ConsoleCommandDeps {
  readonly browser: Browser;
  untilStopped(): Promise<unknown>;
  /** Resolves when a started browser has read its file. */
  untilRead(): Promise<unknown>;
}

const HIGHEST_PORT = 65_535;

/** Time for a cold browser to start, which takes some seconds. */
const READ_MS = 15_000;

const OF_THIS_PROCESS: ConsoleCommandDeps = {
  browser: startBrowser,
  untilStopped: () => new Promise<void>((stopped) => onStopSignal(stopped)),
  untilRead: () => pause(READ_MS),
};

/** `taintward console`: a page that shows evictions and their deadlines, and can stop them. */
export function addConsoleCommand(
  program: Command,
  deps: CliDeps,
  { browser, untilStopped, untilRead } = OF_THIS_PROCESS,
): void {
  const command = program
    .command('console')
    .summary('Open the web console')
    .description(
      'Serve the web console on this machine, and open it in a browser. It shows pending evictions, and can stop them.',
    )
    .option('--host <address>', 'loopback address: 127.0.0.1 or ::1', '127.0.0.1')
    .addOption(
      new Option('--port <number>', 'port of the console').argParser(parsePort).default(0, 'any free one'),
    )
    .option('--no-open', 'print the link without opening a browser')
    .option('--context <name>', 'kubeconfig context of your own, by which the page changes tolerations')
    .addOption(kubeconfigOption())
    .addOption(comparisonOption());
  withExamples(
    command,
    'taintward console',
    'taintward console --table taintward --port 8080 --no-open    # reached by ssh -L 8080:127.0.0.1:8080',
  ).action(() =>
    withFleet<ConsoleOptions>(command, deps, async (fleet, options) => {
      const { host, port, open, comparisonOperators } = options;
      const access = contextAccess(options);
      // If the service already serves a console, use that: it shows more and needs no second process.
      const isOwn = OWN_ONLY.some((name) => command.getOptionValueSource(name) === 'cli');
      const served = isOwn ? undefined : await fleet.consoleLink?.();
      if (served !== undefined) {
        deps.print(linkText(fleet, served));
        const another = open ? await fleet.consoleLink?.() : undefined;
        const opened = another === undefined ? undefined : browser(another);
        if (opened) await untilRead();
        opened?.close();
        return;
      }
      // Report an unreadable fleet here, not on a page that shows nothing.
      await fleet.clusters();
      const [{ startConsole }, { fleetApi }, { textLog }] = await Promise.all([
        import('#shared/console/server.ts'),
        import('#shared/console/fleet-api.ts'),
        import('#shared/telemetry/text-log.ts'),
      ]);
      const { clock, print } = deps;
      const log = textLog(clock, (line) => void process.stderr.write(`${line}\n`));
      const matching = { comparisonOperators };
      const stopped = untilStopped();
      const console = await startConsole({
        host,
        port,
        portSetBy: '--port',
        clock,
        log,
        api: async () =>
          fleetApi({ fleet, own: access && contextFleet(access, clock), matching, clock, log }),
      }).catch((error: Error) => {
        throw error.name === 'ConsoleAddressError' ? new CliError(error.message) : error;
      });
      const opened = open ? browser(console.link()) : undefined;
      try {
        print(linkText(fleet, console.link()));
        print('To stop the console, press Ctrl-C.\n');
        await stopped;
      } finally {
        opened?.close();
        await console.close();
      }
    }),
  );
}

/** Options that apply only to a console that this process serves. */
const OWN_ONLY = ['host', 'port', 'comparisonOperators', 'context'];

const linkText = ({ where }: Pick<Fleet, 'where'>, link: string): string =>
  linesText([`Console of ${where} (${LINK_TERMS}):`, link]);

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= HIGHEST_PORT) return port;
  throw new InvalidArgumentError(`A port is a number from 0 to ${HIGHEST_PORT}.`);
}
