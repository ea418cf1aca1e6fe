import { BlockList, isIP } from 'node:net';
import { DialError } from './connection.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A server's proxy by kubectl's rules: `given` (`proxy-url`), or else `HTTPS_PROXY`, `HTTP_PROXY`, and `NO_PROXY` in
 * either case, never for this machine. Throws `DialError` for an unusable one. Upstream:
 * `golang.org/x/net/http/httpproxy`.
 */
export function proxyFor(server: URL, given?: URL, environment: Environment = process.env): URL | undefined {
  if (given !== undefined) return given;
  const setting = (name: string) => environment[name] || environment[name.toLowerCase()] || '';
  const name = server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const text = setting(name);
  if (text === '' || isExempt(server, setting('NO_PROXY'))) return undefined;
  return proxyUrl(text.includes('://') ? text : `http://${text}`, name);
}

function proxyUrl(text: string, variable: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  // The value is not quoted, because it may contain a password.
  throw new DialError(
    `the proxy in the environment variable ${variable} is not an http or https URL; write it as http://HOST:PORT`,
  );
}

/** Returns the header that authenticates at a proxy whose address contains a name and password. */
export const proxyHeaders = ({ username, password }: URL): Readonly<Record<string, string>> =>
  username === ''
    ? {}
    : {
        'proxy-authorization': `Basic ${btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`)}`,
      };

function isExempt(server: URL, list: string): boolean {
  const host = hostOf(server);
  if (host === 'localhost' || host === '::1' || host.startsWith('127.')) return true;
  const port = portOf(server);
  return list
    .toLowerCase()
    .split(',')
    .map((entry) => entry.trim())
    .some((entry) => entry !== '' && covers(entry, host, port));
}

/** An entry of `NO_PROXY`: `*`, an address or range, a domain, or a domain with a port. */
function covers(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true;
  const [range = '', bits] = entry.split('/');
  if (bits !== undefined)
    return isIP(range) > 0 && isIP(host) === isIP(range) && isWithin(host, range, Number(bits));
  if (isIP(entry) > 0) return entry === host;
  const [, name = entry, onlyPort] = /^(.*):([0-9]+)$/.exec(entry) ?? [];
  if (onlyPort !== undefined && Number(onlyPort) !== port) return false;
  const domain = name.replace(/^\*?\./, '');
  // A leading dot matches only subdomains.
  return host.endsWith(`.${domain}`) || (host === domain && domain === name);
}

function isWithin(host: string, range: string, bits: number): boolean {
  const family = isIP(range) === 6 ? 'ipv6' : 'ipv4';
  if (!Number.isInteger(bits) || bits < 0 || bits > (family === 'ipv6' ? 128 : 32)) return false;
  const list = new BlockList();
  list.addSubnet(range, bits, family);
  return list.check(host, family);
}

export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

export const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === 'https:' ? 443 : 80);
