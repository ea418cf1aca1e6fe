import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ArrowFunction, Node } from 'typescript/unstable/ast';
import {
  isArrowFunction,
  isBinaryExpression,
  isExpressionStatement,
  isFunctionLikeDeclaration,
  isReturnStatement,
  isTryStatement,
} from 'typescript/unstable/ast/is';
import { API, SignatureKind, type Type } from 'typescript/unstable/sync';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

/** Expressions below a node that must not be promises: statements, except assignments, and what a `try` returns. */
function settledIn(node: Node, isTried = false): readonly Node[] {
  const below = (child: Node, isChildTried: boolean) => settledIn(child, isChildTried);
  if (isTryStatement(node)) {
    const { tryBlock, catchClause, finallyBlock } = node;
    return [
      ...below(tryBlock, true),
      ...(catchClause ? below(catchClause, isTried || finallyBlock !== undefined) : []),
      ...(finallyBlock ? below(finallyBlock, isTried) : []),
    ];
  }
  const found: Node[] = [];
  if (isExpressionStatement(node) && !isBinaryExpression(node.expression)) found.push(node.expression);
  if (isReturnStatement(node) && isTried && node.expression) found.push(node.expression);
  node.forEachChild((child) => {
    found.push(...below(child, isTried && !isFunctionLikeDeclaration(node)));
  });
  return found;
}

function arrowsIn(node: Node): readonly ArrowFunction[] {
  const found: ArrowFunction[] = isArrowFunction(node) ? [node] : [];
  node.forEachChild((child) => {
    found.push(...arrowsIn(child));
  });
  return found;
}

// Biome's noFloatingPromises and noMisusedPromises can't see the types of most libraries.
test('each promise is awaited, kept, or marked with void; one that a try returns is awaited', (t) => {
  const api = new API({ cwd: PROJECT_DIR });
  t.after(() => api.close());
  const config = join(PROJECT_DIR, 'tsconfig.json');
  const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
  assert.ok(project);
  const { program, checker } = project;
  const isPromise = (type: Type | undefined): boolean => {
    const settled = type && checker.getNonNullableType(type);
    return settled !== undefined && checker.getPropertyOfType(settled, 'then') !== undefined;
  };
  const returned = (type: Type | undefined): readonly (Type | undefined)[] =>
    type
      ? checker
          .getSignaturesOfType(type, SignatureKind.Call)
          .map((each) => checker.getReturnTypeOfSignature(each))
      : [];
  /** Callbacks whose promise the caller drops. */
  const isDropped = (arrow: ArrowFunction): boolean => {
    const wanted = returned(checker.getContextualType(arrow));
    return (
      wanted.length > 0 &&
      wanted.every((type) => type === checker.getVoidType()) &&
      returned(checker.getTypeAtLocation(arrow)).some(isPromise)
    );
  };
  const paths = globSync('{cdk,deploy,functions,shared,simulator}/**/*.ts', {
    cwd: PROJECT_DIR,
    exclude: ['**/node_modules/**', 'functions/console/page/**'],
  });
  const promises = paths.flatMap((path) => {
    const source = program.getSourceFile(join(PROJECT_DIR, path));
    assert.ok(source, path);
    const nodes = settledIn(source);
    const types = checker.getTypeAtLocation(nodes);
    const found = [
      ...nodes.filter((_, index) => isPromise(types[index])),
      ...arrowsIn(source).filter(isDropped),
    ];
    return found.map((node) => `${path}: ${node.getText(source)}`);
  });
  assert.ok(paths.length > 500);
  assert.deepEqual(promises, []);
});
