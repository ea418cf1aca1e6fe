import { type FleetApiOptions, fleetApi } from './fleet-api.ts';
import { type PageFiles, readPageFiles } from './page-files.ts';
import { type Console, startConsole } from './server.ts';

export interface ConsoleOfFleet extends FleetApiOptions {
  readonly host?: string | undefined;
  readonly port: number;
  /** What the operator sets it by. */
  readonly portSetBy: string;
  /** Absent: the one that is part of this release. */
  readonly page?: PageFiles;
}

/** Serves the console of a fleet, until it is closed. Rejects with `ConsoleAddressError`. */
export async function openConsole(options: ConsoleOfFleet): Promise<Console> {
  const { host, port, portSetBy, clock, page = readPageFiles() } = options;
  const api = fleetApi(options);
  return startConsole({ ...(host === undefined ? {} : { host }), port, portSetBy, api, page, clock });
}
