import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { text } from 'node:stream/consumers';
import type { ManifestFile } from '#shared/operations/ask/lint.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { CliError } from './command.ts';

const MANIFEST = /\.(?:ya?ml|json)$/;

/**
 * Reads the manifests at these paths: files, YAML and JSON files below directories, and `-` for standard
 * input. File names are relative to the working directory, with slashes. Rejects with `CliError` if a path
 * cannot be read.
 */
export async function manifestFiles(
  paths: readonly string[],
  input: NodeJS.ReadableStream,
): Promise<readonly ManifestFile[]> {
  const files: ManifestFile[] = [];
  for (const path of paths) {
    if (path === '-') {
      files.push({ name: 'stdin', text: await text(input) });
      continue;
    }
    try {
      for (const file of await filesAt(path)) {
        files.push({ name: nameOf(file), text: await readFile(file, 'utf8') });
      }
    } catch (error) {
      const why = errorMessage(error);
      throw new CliError(
        `${path} cannot be read (${why}). Specify a file, a directory, or - for standard input.`,
      );
    }
  }
  return files;
}

async function filesAt(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const below = await readdir(path, { recursive: true, withFileTypes: true });
  return below
    .filter((entry) => entry.isFile() && MANIFEST.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

const nameOf = (file: string): string => relative('', file).split(sep).join('/');
