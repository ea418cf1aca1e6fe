import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** Maximum open files of this process, as far as the system shows it. */
const most = mostOpenFiles();
/** Descriptors that no caller gets: evictions need them for API servers, and the store for its files. */
const RESERVE = Math.min(64, most / 4);

/** Reports whether a connection got one of the last descriptors: the system gives the lowest that is free. */
export function isInReserve(socket: Socket): boolean {
  // Node's own cluster module reads this field, too; absent on Windows.
  const { fd = 0 } = (socket as { readonly _handle?: { readonly fd?: number } | null })._handle ?? {};
  return fd >= most - RESERVE;
}

function mostOpenFiles(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    // Only Linux shows the limit.
    return Number.POSITIVE_INFINITY;
  }
}
