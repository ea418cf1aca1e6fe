import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folders of the other files that contain the version, beside package.json, its lockfile and the changelog. */
const FOLDERS = ['deploy'];

/** The version of the chart, of the image, and in labels. */
const STANDS =
  /(?<=\b(?:version|appVersion|app\.kubernetes\.io\/version): "?|\/taintward\/taintward:|helm\.sh\/chart: "?taintward-)\d+\.\d+\.\d+\b/g;

/** Returns the project versions that a file names, in order. */
export const versionsIn = (text: string): readonly string[] => text.match(STANDS) ?? [];

/** Returns the text with `version` in their place. */
export const withVersion = (text: string, version: string): string => text.replace(STANDS, version);

/** Returns the files that may name the version, from `root`. */
export const placesOf = (root: string): readonly string[] =>
  FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
    ),
  );
