import { readFileSync } from 'node:fs';
import { badRequest } from '../objects/status.ts';

/** The media type of requests by kubectl's typed clients: evictions by `drain`, `create deployment`, `create namespace`. */
export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/**
 * The fields of the messages of Kubernetes 1.36 that kubectl sends, from its `generated.proto`: number to `name type`, with
 * `[` for repeated ones, `{` for maps from strings, and `~` where JSON has the message's fields in its parent. Statuses are
 * left out: the server sets them.
 */
type Messages = Readonly<Record<string, Readonly<Record<string, string>>>>;

let messages: Messages | undefined;
const load = (): Messages => {
  messages ??= JSON.parse(
    readFileSync(new URL('./protobuf-messages.json', import.meta.url), 'utf8'),
  ) as Messages;
  return messages;
};

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.';
const MAGIC = Buffer.from('k8s\0');

/** Reads an object in Kubernetes' protobuf envelope; returns the value that its JSON would have. Throws 400. */
export function parseProtobuf(bytes: Buffer): unknown {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw badRequest('the body of the request is not Kubernetes protobuf: it does not begin with k8s');
  }
  try {
    // Upstream: `runtime.Unknown`.
    const [type, raw] = [1, 2].map((number) => bytesOf(fieldsOf(bytes.subarray(MAGIC.length)), number));
    const [apiVersion, kind] = [1, 2].map((number) => bytesOf(fieldsOf(type), number)?.toString() ?? '');
    return { apiVersion, kind, ...decode(messageOf(apiVersion ?? '', kind ?? ''), raw ?? Buffer.alloc(0)) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw badRequest(`the body of the request is not whole protobuf: ${error.message}`);
  }
}

function messageOf(apiVersion: string, kind: string): string {
  const group = apiVersion.includes('/') ? apiVersion.replace('/', '.') : `core.${apiVersion}`;
  const name = kind === 'DeleteOptions' ? `${META}${kind}` : `io.k8s.api.${group}.${kind}`;
  if (load()[name] === undefined) throw unknown(`${kind} in version "${apiVersion}"`);
  return name;
}

const unknown = (what: string) =>
  badRequest(`${what} is not known to the simulated cluster as protobuf: send JSON`);

/** One field as received: a number, or bytes. */
interface Field {
  readonly number: number;
  readonly value: bigint | Buffer;
}

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Returns the fields of a message, in order. Throws `RangeError` if the message is cut off. */
function fieldsOf(bytes: Buffer = Buffer.alloc(0)): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
      if (shift > 63n) throw new RangeError('a number is longer than 64 bits');
    }
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new RangeError('it ends within a field');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const wireType = tag & 7;
    if (wireType === VARINT) fields.push({ number, value: varint() });
    else if (wireType === BYTES) fields.push({ number, value: take(Number(varint())) });
    else if (wireType === FIXED64) fields.push({ number, value: take(8) });
    else if (wireType === FIXED32) fields.push({ number, value: take(4) });
    else throw new RangeError(`a field has the unknown wire type ${wireType}`);
  }
  return fields;
}

function bytesOf(fields: readonly Field[], number: number): Buffer | undefined {
  const value = fields.findLast((field) => field.number === number)?.value;
  return Buffer.isBuffer(value) ? value : undefined;
}

/** Returns a message as JSON. Empty texts and times are omitted, as Go omits them from JSON. */
function decode(message: string, bytes: Buffer): Record<string, unknown> {
  const known = load()[message];
  if (known === undefined) throw unknown(message);
  const object: Record<string, unknown> = {};
  for (const { number, value } of fieldsOf(bytes)) {
    const field = known[number];
    if (field === undefined) continue;
    if (field.startsWith('~')) {
      if (Buffer.isBuffer(value)) Object.assign(object, decode(field.slice(1), value));
      continue;
    }
    const [name = '', type = ''] = field.split(' ');
    if (type.startsWith('[')) {
      const items = Array.isArray(object[name]) ? object[name] : [];
      object[name] = [...items, jsonOf(type.slice(1), value)];
    } else if (type.startsWith('{')) {
      const entry = fieldsOf(Buffer.isBuffer(value) ? value : undefined);
      const item = entry.findLast((part) => part.number === 2)?.value ?? Buffer.alloc(0);
      const key = bytesOf(entry, 1)?.toString() ?? '';
      object[name] = { ...(object[name] as object), [key]: jsonOf(type.slice(1), item) };
    } else {
      const one = jsonOf(type, value);
      if (one !== undefined && one !== '') object[name] = one;
    }
  }
  return object;
}

function jsonOf(type: string, value: bigint | Buffer): unknown {
  if (typeof value === 'bigint') {
    if (type === 'bool') return value !== 0n;
    const signed = BigInt.asIntN(64, value);
    return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed;
  }
  switch (type) {
    case 'string':
      return value.toString();
    case 'bytes':
      return value.toString('base64');
    case `${META}Time`:
      return timeOf(fieldsOf(value));
    case 'io.k8s.apimachinery.pkg.api.resource.Quantity':
      return bytesOf(fieldsOf(value), 1)?.toString();
    case 'io.k8s.apimachinery.pkg.util.intstr.IntOrString':
      return intOrString(fieldsOf(value));
    default:
      return decode(type, value);
  }
}

function timeOf(fields: readonly Field[]): string | undefined {
  const seconds = fields.find(({ number }) => number === 1)?.value;
  if (typeof seconds !== 'bigint') return undefined;
  return new Date(Number(BigInt.asIntN(64, seconds)) * 1000).toISOString().replace('.000', '');
}

function intOrString(fields: readonly Field[]): number | string {
  const isText = fields.find(({ number }) => number === 1)?.value === 1n;
  if (isText) return bytesOf(fields, 3)?.toString() ?? '';
  const value = fields.find(({ number }) => number === 2)?.value;
  return typeof value === 'bigint' ? Number(BigInt.asIntN(64, value)) : 0;
}
