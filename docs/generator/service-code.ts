import { join } from 'node:path';
import type { SourceFile } from 'typescript/unstable/ast';
import { API, type Checker } from 'typescript/unstable/sync';

const ROOT = join(import.meta.dirname, '../..');

/** The service's code as read by the compiler; dispose of it after use. */
export interface ServiceCode extends Disposable {
  readonly checker: Checker;
  /** All files of `functions`, `shared`, and `simulator`. */
  readonly files: readonly SourceFile[];
  /** Returns a file by its path from the repository's root. Throws when it is missing. */
  file(path: string): SourceFile;
}

/** Reads `functions`, `shared`, and `simulator` with the compiler. */
export function readServiceCode(): ServiceCode {
  const api = new API({ cwd: ROOT });
  const [project] = api
    .updateSnapshot({ openProjects: [join(import.meta.dirname, 'tsconfig.json')] })
    .getProjects();
  if (!project) throw new Error('the compiler does not read docs/generator/tsconfig.json');
  const { checker, program, rootFiles } = project;
  const file = (path: string): SourceFile => {
    const found = program.getSourceFile(path);
    if (!found) throw new Error(`there is no ${path}`);
    return found;
  };
  return {
    checker,
    files: rootFiles.map(file),
    file: (path) => file(join(ROOT, path)),
    [Symbol.dispose]: () => api.close(),
  };
}
