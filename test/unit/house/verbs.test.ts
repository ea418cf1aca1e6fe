import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeIn } from './literals.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Words that meant many things as names: each use has a word of its own, such as `send`, `log`, `report`, `read`. */
const VAGUE =
  /^(?:tells?|told|said|says?|hears?|heard|asked|standings?|spoken|speaks?|anew|brakes?|needs|looks?|looked|looking)$/;
/** The code, and the uses that are left there. Lower their number with each one that goes. */
const CODE = {
  // The name of an error of DNS.
  'the product': { files: '{functions,shared,cdk}/**/*.ts', left: 2 },
  // `needs` is a field of GitHub's workflows.
  tests: { files: 'test/**/*.ts', left: 5 },
};

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[ _]/);

for (const [code, { files, left }] of Object.entries(CODE)) {
  test(`names in ${code} have one meaning each`, () => {
    const paths = globSync(files, { cwd: ROOT, exclude: ['**/node_modules'] });
    const uses = paths.flatMap((file) => {
      const names = codeIn(readFileSync(join(ROOT, file), 'utf8')).match(/[A-Za-z_$][\w$]*/g) ?? [];
      return names
        .filter((name) => wordsOf(name).some((word) => VAGUE.test(word)))
        .map((name) => `${file}: ${name}`);
    });
    assert.ok(
      uses.length <= left,
      `say what is done (send, log, report, read, state, …) instead of\n${uses.join('\n')}`,
    );
  });
}

test('names are found in code, and not in comments and literals', () => {
  const source =
    "// told\nconst a = `said $HOLE{heard} $HOLE{'asked'}`; /* look */ const b = /tell/;".replaceAll(
      'HOLE',
      '',
    );
  assert.deepEqual(codeIn(source).match(/\w+/g), ['const', 'a', 'heard', 'const', 'b']);
});
