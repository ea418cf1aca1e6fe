import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseLabelSelector, selectorText, selectsLabels } from '#simulator/objects/label-selector.ts';
import { StatusError } from '#simulator/objects/status.ts';

const LABELS = { app: 'web', tier: '' };
const refused = (error: unknown) => error instanceof StatusError && error.code === 400;

describe('a label selector of a request', () => {
  for (const [selector, selects] of [
    ['app=web', true],
    ['app==web', true],
    ['app!=web', false],
    ['app!=db', true],
    ['zone!=a', true],
    ['app', true],
    ['!app', false],
    ['!zone', true],
    ['tier=', true],
    ['app=web,zone=a', false],
    ['app in (db, web),!zone', true],
    ['app in (db)', false],
    ['app notin (db,cache)', true],
    ['zone notin (a)', true],
    ['zone in (a)', false],
    ['', true],
  ] as const) {
    test(`"${selector}" ${selects ? 'selects' : 'leaves out'} an object labeled app=web`, () => {
      assert.equal(parseLabelSelector(selector)(LABELS), selects);
    });
  }

  for (const selector of ['==', 'app in web', 'app in (web', '=web', 'app>1']) {
    test(`rejects "${selector}"`, () => assert.throws(() => parseLabelSelector(selector), refused));
  }
});

describe('a label selector of an object', () => {
  const one = (operator: string, values: string[] = []) => ({
    matchExpressions: [{ key: 'app', operator, values }],
  });

  test('selects everything when it is empty, and nothing when it is absent', () => {
    assert.deepEqual([selectsLabels({}, {}), selectsLabels(undefined, LABELS)], [true, false]);
  });

  test('requires all labels and all expressions', () => {
    assert.ok(selectsLabels({ matchLabels: { app: 'web' }, ...one('In', ['web']) }, LABELS));
    assert.ok(!selectsLabels({ matchLabels: { app: 'web' }, ...one('DoesNotExist') }, LABELS));
    assert.ok(!selectsLabels({ matchLabels: { zone: 'a' }, ...one('Exists') }, LABELS));
  });

  test('selects nothing with an unknown operator', () => {
    assert.ok(!selectsLabels(one('Near', ['web']), LABELS));
  });

  test('is printed as by kubectl', () => {
    const selector = { matchLabels: { tier: 'x' }, ...one('NotIn', ['a', 'b']) };
    assert.equal(selectorText(selector), 'tier=x,app notin (a,b)');
    assert.equal(selectorText({}), '<none>');
  });
});
