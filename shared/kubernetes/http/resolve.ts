import { lookup as askSystem, type LookupAddress, type LookupOptions } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import { PrioritySemaphore } from './priority-semaphore.ts';

const HOSTS_FILE = '/etc/hosts';
/** Timeout of one try at one DNS server, and the number of tries. */
const TIMEOUT_MS = 1_000;
const TRIES = 2;
/** Lookups may use this many of the four threads that the system's resolver shares with files and compression. */
const MAX_CONCURRENT_SYSTEM_LOOKUPS = 2;
/** Codes of a DNS server's response that there is no such name, or no such address of it. */
const NOT_THERE: readonly unknown[] = ['ENOTFOUND', 'ENODATA'];

const systemTurns = new PrioritySemaphore(MAX_CONCURRENT_SYSTEM_LOOKUPS);
const system = promisify(askSystem) as (name: string, options: { all: true }) => Promise<LookupAddress[]>;
const underway = new Map<string, Promise<readonly LookupAddress[]>>();

/**
 * Finds a name's addresses, for `net.connect`. The sources are the hosts file, then DNS, and then, if DNS has no such
 * name, the system's resolver (search domains, other sources). Rejects with `ETIMEOUT` if DNS does not respond. The
 * system's own resolver blocks a thread until it times out, and a few silent DNS servers would delay every cluster.
 * So it is used only if DNS responds.
 */
export const lookup: LookupFunction = (name, options, callback) => {
  addressesOf(name).then(
    (found) => {
      const fitting = found.filter(({ family }) => !wanted(options) || family === wanted(options));
      const [first] = fitting;
      if (first === undefined) callback(new NoAddressError(name), '', 0);
      else if (options.all) callback(null, fitting);
      else callback(null, first.address, first.family);
    },
    (error: NodeJS.ErrnoException) => callback(error, '', 0),
  );
};

class NoAddressError extends Error {
  readonly code = 'ENOTFOUND';

  constructor(name: string) {
    super(`${name} has no address`);
  }
}

const wanted = ({ family }: LookupOptions): number => Number(String(family ?? 0).replace('IPv', ''));

function addressesOf(name: string): Promise<readonly LookupAddress[]> {
  const asked = underway.get(name);
  if (asked !== undefined) return asked;
  const answer = find(name).finally(() => underway.delete(name));
  underway.set(name, answer);
  return answer;
}

async function find(name: string): Promise<readonly LookupAddress[]> {
  const listed = listedAddresses(hostsFile(), name);
  if (listed.length > 0) return listed;
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const found = answers.flatMap((answer, index) =>
    answer.status === 'fulfilled'
      ? answer.value.map((address) => ({ address, family: index === 0 ? 4 : 6 }))
      : [],
  );
  if (found.length > 0) return found;
  for (const answer of answers) {
    if (answer.status === 'rejected' && !NOT_THERE.includes(answer.reason.code)) throw answer.reason;
  }
  return systemTurns.run(() => system(name, { all: true }), { inHurry: false });
}

function hostsFile(): string {
  try {
    return readFileSync(HOSTS_FILE, 'utf8');
  } catch {
    return '';
  }
}

/** Returns the addresses of a name in a hosts file (hosts(5)). */
export function listedAddresses(hosts: string, name: string): readonly LookupAddress[] {
  const wantedName = name.toLowerCase().replace(/\.$/, '');
  return hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    return names.includes(wantedName) ? [{ address, family: address.includes(':') ? 6 : 4 }] : [];
  });
}
