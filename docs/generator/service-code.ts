import { join } from 'node:path';
import type { SourceFile } from 'typescript/unstable/ast';
import { API, type Checker } from 'typescript/unstable/sync';

const ROOT = join(import.meta.dirname, '../..');

/** The code of the service as the compiler reads it; to be disposed of. */
export interface ServiceCode extends Disposable {
  readonly checker: Checker;
  /** All files of `functions`, `shared`, and `simulator`. */
  readonly files: readonly SourceFile[];
  /** A file by its path from the repository's root. Throws when there is none. */
  file(path: string): SourceFile;
}

/** Has the compiler read `functions`, `shared`, and `simulator`. */
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
