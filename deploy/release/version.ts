/** A released version: MAJOR.MINOR.PATCH, as numbers. */
export type Version = readonly [major: number, minor: number, patch: number];

/** Reads a version; `undefined`: the text is not a version, or not one that is released (`1.0.0-rc.1`). */
export function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch] = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/.exec(text) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor), Number(patch)];
}

/** Compares two versions. Below zero: `one` comes before `other`; above: after it. */
export function compareVersions(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
}
