import { hostname, userInfo } from 'node:os';

/** Who runs this process, and where: `user@host`. A user without a name is its number. */
export function localUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.() ?? 'somebody'}@${hostname()}`;
  }
}
