import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';

/** The earliest date of the format: 1980-01-01. */
const DATE = 0x21;
const VERSION_NEEDED = 20;
const DEFLATED = 8;
/** Lambda runs the code as another user, who must be able to read it. */
const MODE = 0o100644;
const UNIX = 3 << 8;

/** Packs the files of a folder into a ZIP archive. The same files give the same archive. */
export function zip(folder: string): Uint8Array {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const file of readdirSync(folder).toSorted()) {
    const content = readFileSync(join(folder, file));
    const packed = deflateRawSync(content, { level: 9 });
    const name = Buffer.from(file);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(VERSION_NEEDED, 0);
    common.writeUInt16LE(DEFLATED, 4);
    common.writeUInt16LE(DATE, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const place = Buffer.alloc(14);
    place.writeUInt32LE((MODE << 16) >>> 0, 6);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02'), uint16(UNIX | VERSION_NEEDED), common, place, name);
    const entry = [Buffer.from('PK\x03\x04'), common, name, packed];
    files.push(...entry);
    offset += Buffer.concat(entry).length;
  }
  const size = Buffer.concat(directory).length;
  const end = Buffer.alloc(18);
  const count = files.length / 4;
  end.writeUInt16LE(count, 4);
  end.writeUInt16LE(count, 6);
  end.writeUInt32LE(size, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...files, ...directory, Buffer.from('PK\x05\x06'), end]);
}

function uint16(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeUInt16LE(value);
  return buffer;
}
