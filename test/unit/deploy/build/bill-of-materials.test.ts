import assert from 'node:assert/strict';
import { test } from 'node:test';
import { billOfProject } from '#deploy/build/bill-of-materials.ts';
import { production } from './lockfile.ts';

interface Component {
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly object[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

const hex = (integrity = ''): string =>
  Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');

const named = ({ name, version }: { readonly name: string; readonly version: string }) =>
  `${name}@${version}`;

test('the bill of materials lists exactly the deployable packages, each with version, license, and archive hash', () => {
  const components = billOfProject().components as unknown as readonly Component[];
  assert.deepEqual(components.map(named).toSorted(), [...new Set(production.map(named))].toSorted());
  for (const { name, version, integrity } of production) {
    const { licenses = [], hashes } =
      components.find((each) => each.name === name && each.version === version) ?? {};
    assert.equal(licenses.length, 1, name);
    assert.deepEqual(hashes, [{ alg: 'SHA-512', content: hex(integrity) }], name);
  }
});
