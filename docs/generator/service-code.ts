import { join } from 'node:path';
import type { SourceFile } from 'typescript/unstable/ast';
import { isInterfaceDeclaration, isTypeAliasDeclaration } from 'typescript/unstable/ast/is';
import { API, type Checker, type Symbol as Property, type Type } from 'typescript/unstable/sync';

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

/** Returns an interface or type alias of a file. Throws when it is missing. */
export function declaredType({ checker, file }: ServiceCode, path: string, name: string): Type {
  const declared = file(path).statements.find(
    (each) => (isInterfaceDeclaration(each) || isTypeAliasDeclaration(each)) && each.name.text === name,
  );
  const type = declared && checker.getTypeAtLocation(declared);
  if (!type) throw new Error(`${path} declares no ${name}`);
  return type;
}

export function typeOf(checker: Checker, property: Property): Type {
  const type = checker.getTypeOfSymbol(property);
  if (!type) throw new Error(`${property.name} has no type`);
  return type;
}
