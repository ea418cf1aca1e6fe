import { hostname, userInfo } from 'node:os';

/** Returns the user and the host of this process: `user@host`. A user without a name is shown by its number. */
export function localUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.() ?? 'somebody'}@${hostname()}`;
  }
}
