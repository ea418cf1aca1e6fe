import { lookup as askSystem, type LookupAddress, type LookupOptions } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import { PrioritySemaphore } from './priority-semaphore.ts';

const HOSTS_FILE = '/etc/hosts';
const RESOLVER_FILE = '/etc/resolv.conf';
/** Timeout of one try at one DNS server, and the number of tries. */
const TIMEOUT_MS = 1_000;
const TRIES = 2;
/** Timeout of all queries for a name: two of three servers may be silent, and the connection still has time. */
const DNS_TIMEOUT_MS = 2_200;
/** How long the addresses of one family wait for the other's: the resolution delay of RFC 8305. */
const OTHER_FAMILY_MS = 50;
/** Lookups may use this many of the four threads that the system's resolver shares with files and compression. */
const MAX_CONCURRENT_SYSTEM_LOOKUPS = 2;
/** Codes of a DNS server's response that there is no such name, or no such address of it. */
const NOT_THERE: readonly string[] = ['ENOTFOUND', 'ENODATA'];
/** Codes of a DNS server's response that it cannot tell. Many forwarders know no names without a dot. */
const CANNOT_TELL: readonly string[] = ['ESERVFAIL', 'EREFUSED'];
/** Codes of no response: the DNS server is silent, its port is closed, or the time is over. */
const SILENT: readonly string[] = ['ETIMEOUT', 'ECONNREFUSED', 'ECANCELLED'];

const systemTurns = new PrioritySemaphore(MAX_CONCURRENT_SYSTEM_LOOKUPS);
const system = promisify(askSystem) as (name: string, options: { all: true }) => Promise<LookupAddress[]>;
const underway = new Map<string, Promise<readonly LookupAddress[]>>();

/**
 * Finds a name's addresses: the hosts file, DNS with its search domains, then, if DNS has no such name, the system's
 * resolver. It blocks a thread until it times out, and silent DNS servers would delay every cluster: only used if DNS
 * responds. Rejects with `ETIMEOUT` if not.
 */
export const lookup: LookupFunction = (name, options, callback) => {
  void addressesOf(name).then(
    (found) => {
      const fitting = found.filter(({ family }) => !wanted(options) || family === wanted(options));
      const [first] = fitting;
      if (first === undefined) callback(dnsError(name, 'ENOTFOUND'), '', 0);
      else if (options.all) callback(null, fitting);
      else callback(null, first.address, first.family);
    },
    (error: NodeJS.ErrnoException) => callback(error, '', 0),
  );
};

const dnsError = (name: string, code: string) =>
  Object.assign(new Error(`${name} has no known address`), { code });

const wanted = ({ family }: LookupOptions): number => Number(String(family ?? 0).replace('IPv', ''));

function addressesOf(name: string): Promise<readonly LookupAddress[]> {
  const pending = underway.get(name);
  if (pending !== undefined) return pending;
  const answer = find(name).finally(() => underway.delete(name));
  underway.set(name, answer);
  return answer;
}

async function find(name: string): Promise<readonly LookupAddress[]> {
  const listed = listedAddresses(textOf(HOSTS_FILE), name);
  if (listed.length > 0) return listed;
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  const timer = setTimeout(() => resolver.cancel(), DNS_TIMEOUT_MS);
  const codes: string[] = [];
  try {
    // All are asked now, because a silent search domain must not use up the time of the others.
    for (const pending of searchNames(textOf(RESOLVER_FILE), name).map((each) => askDns(resolver, each))) {
      const { found, refusals } = await pending;
      if (found.length > 0) return found;
      codes.push(...refusals);
    }
  } finally {
    clearTimeout(timer);
    resolver.cancel();
  }
  const leftToSystem = name.includes('.') ? NOT_THERE : [...NOT_THERE, ...CANNOT_TELL];
  const code = codes.find((each) => !leftToSystem.includes(each));
  if (code !== undefined) throw dnsError(name, SILENT.includes(code) ? 'ETIMEOUT' : code);
  return systemTurns.run(() => system(name, { all: true }), { inHurry: false });
}

/** Asks for the addresses of a name. Those of one family are enough. `refusals`: why there are none of a family. */
async function askDns(resolver: Resolver, name: string) {
  const found: LookupAddress[] = [];
  const refusals: string[] = [];
  const enough = Promise.withResolvers<void>();
  const ask = async (family: number, query: Promise<string[]>) => {
    try {
      found.push(...(await query).map((address) => ({ address, family })));
      setTimeout(enough.resolve, OTHER_FAMILY_MS);
    } catch (error) {
      refusals.push(String((error as NodeJS.ErrnoException).code));
    }
  };
  const both = Promise.all([ask(4, resolver.resolve4(name)), ask(6, resolver.resolve6(name))]);
  await Promise.race([both, enough.promise]);
  return { found: found.toSorted((a, b) => a.family - b.family), refusals };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Returns the names to ask for, in their order, by the settings of a resolver (resolv.conf(5)). */
export function searchNames(settings: string, name: string): readonly string[] {
  const lines = settings.split('\n').map((line) => line.trim().split(/\s+/));
  const domains = lines.findLast(([key]) => key === 'search' || key === 'domain')?.slice(1) ?? [];
  const options = lines.filter(([key]) => key === 'options').flat();
  const ndots = Number(options.findLast((option) => option.startsWith('ndots:'))?.slice(6) ?? 1);
  // The system's resolver searches for the others, after it asked for the name itself.
  if (name.split('.').length > ndots || name.endsWith('.')) return [name];
  return [...domains.filter((domain) => domain !== '.').map((domain) => `${name}.${domain}`), name];
}

/** Returns the addresses of a name in a hosts file (hosts(5)). */
export function listedAddresses(hosts: string, name: string): readonly LookupAddress[] {
  const wantedName = name.toLowerCase().replace(/\.$/, '');
  return hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    return names.includes(wantedName) ? [{ address, family: address.includes(':') ? 6 : 4 }] : [];
  });
}
