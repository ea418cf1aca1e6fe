import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeIn } from './literals.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Words that meant many things as names: each use has a word of its own, such as `send`, `log`, `report`, `read`. */
const VAGUE =
  /^(?:tells?|told|said|says?|hears?|heard|asked|standings?|spoken|speaks?|anew|brakes?|needs|looks?|looked|looking)$/;
/** Uses that are left: the name of an error of DNS. Lower it with each one that goes. */
const CEILING = 2;

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[ _]/);

test('names in the product have one meaning each', () => {
  const uses = globSync('{functions,shared,cdk}/**/*.ts', { cwd: ROOT }).flatMap((file) => {
    const names = codeIn(readFileSync(join(ROOT, file), 'utf8')).match(/[A-Za-z_$][\w$]*/g) ?? [];
    return names
      .filter((name) => wordsOf(name).some((word) => VAGUE.test(word)))
      .map((name) => `${file}: ${name}`);
  });
  assert.ok(
    uses.length <= CEILING,
    `say what is done (send, log, report, read, state, …) instead of\n${uses.join('\n')}`,
  );
});

test('names are found in code, and not in comments and literals', () => {
  const source =
    "// told\nconst a = `said $HOLE{heard} $HOLE{'asked'}`; /* look */ const b = /tell/;".replaceAll(
      'HOLE',
      '',
    );
  assert.deepEqual(codeIn(source).match(/\w+/g), ['const', 'a', 'heard', 'const', 'b']);
});
