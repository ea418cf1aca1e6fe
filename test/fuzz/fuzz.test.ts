import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KINDS } from '#test/fuzz/kinds.ts';

/** The short form of `npm run fuzz`; `FUZZ_SEED=<number>` generates other inputs. */
const RUNS = 200;
const { FUZZ_SEED = '1' } = process.env;

describe('hostile input', () => {
  for (const { name, fuzz } of KINDS) {
    test(`accepts or properly rejects ${RUNS} ${name}`, async (context) => {
      const { broken, accepted, refused } = await fuzz({ runs: RUNS, seed: Number(FUZZ_SEED) });
      assert.equal(broken, undefined, broken);
      assert.ok(accepted > 0 && refused > 0);
      context.diagnostic(`${accepted} taken, ${refused} refused`);
    });
  }
});
