import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseInt64Json } from '#shared/kubernetes/http/api-json.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { type ConformanceCase, caseFile, describeIssue } from './suite.ts';
import { suites } from './suites.ts';

/** One file of a directory. */
export type ReadFile =
  | { readonly name: string; readonly cases: readonly ConformanceCase[] }
  /** One sentence with the reason for which the file has no runnable cases. */
  | { readonly name: string; readonly fault: string };

/** The directory cannot be used at all; the message has the reason. */
export class CaseDirectoryError extends Error {
  override readonly name = 'CaseDirectoryError';
}

/** Reads every `*.json` file of a directory, by name. Throws `CaseDirectoryError` when there is none to read. */
export async function readDirectory(directory: string): Promise<readonly ReadFile[]> {
  const names = await namesIn(directory);
  const files = names.filter((name) => name.endsWith('.json')).sort();
  if (files.length === 0) {
    throw new CaseDirectoryError(
      `The directory ${directory} holds no *.json file: name one with case files.`,
    );
  }
  return Promise.all(files.map((name) => readCaseFile(directory, name)));
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new CaseDirectoryError(
      `The directory ${directory} cannot be read (${code}): name one with case files.`,
    );
  }
}

async function readCaseFile(directory: string, name: string): Promise<ReadFile> {
  let content: unknown;
  try {
    content = parseInt64Json(await readFile(join(directory, name), 'utf8'));
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read';
    return { name, fault: `${name} ${reason}: ${errorMessage(error)}.` };
  }
  const file = caseFile.safeParse(content);
  if (!file.success) return { name, fault: `${name} is not a case file: ${describeIssue(file.error)}.` };
  const suite = suites.find(({ schema }) => schema === file.data.schema);
  if (!suite) {
    const known = suites.map(({ schema }) => schema).join(', ');
    return { name, fault: `${name} has the unknown schema "${file.data.schema}": use one of ${known}.` };
  }
  return { name, cases: suite.cases(file.data) };
}
