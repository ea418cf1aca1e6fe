import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Where the version stands in other files than package.json, its lockfile and the changelog. */
const FOLDERS = ['deploy'];

/** As that of the chart, of the image, and in labels. */
const STANDS =
  /(?<=\b(?:version|appVersion|app\.kubernetes\.io\/version): "?|\/taintward\/taintward:|helm\.sh\/chart: "?taintward-)\d+\.\d+\.\d+\b/g;

/** The versions that a file names as that of this project, in its order. */
export const versionsIn = (text: string): readonly string[] => text.match(STANDS) ?? [];

/** The text with `version` in their place. */
export const withVersion = (text: string, version: string): string => text.replace(STANDS, version);

/** The files that may name it, from `root`. */
export const placesOf = (root: string): readonly string[] =>
  FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
    ),
  );
