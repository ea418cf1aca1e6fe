import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  chosenNamespaces,
  POD_TAKEOVER,
  podTakeover,
  selectedNamespaces,
} from '#shared/operations/takeover/at-pods.ts';

const LABEL = 'taintward.dev/takeover';
const chosen = [{ key: 'team', operator: 'In', values: ['web'] }] as const;

test('the namespaces that were chosen are read from the selector of this release, and of one from before its label was renamed', () => {
  assert.deepEqual(chosenNamespaces(selectedNamespaces(chosen)), chosen);
  const former = [
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
    { key: LABEL, operator: 'NotIn', values: ['off'] },
    { key: LABEL, operator: 'In', values: ['on'] },
  ] as const;
  assert.deepEqual(chosenNamespaces(former), [former[2]]);
});

test('both values of the label opt in, and both opt out', () => {
  const [, out, into] = selectedNamespaces(POD_TAKEOVER.namespaces);
  assert.deepEqual(
    [out, into],
    [
      { key: LABEL, operator: 'NotIn', values: ['disabled', 'off'] },
      { key: LABEL, operator: 'In', values: ['enabled', 'on'] },
    ],
  );
  const policies = podTakeover(POD_TAKEOVER) as readonly {
    spec?: { matchConditions?: { name: string; expression: string }[] };
  }[];
  const conditions = policies.flatMap(({ spec }) => spec?.matchConditions ?? []);
  assert.equal(
    conditions.find(({ name }) => name === 'not-opted-out')?.expression,
    `!has(object.metadata.labels) || !("${LABEL}" in object.metadata.labels) || object.metadata.labels["${LABEL}"] != "disabled" && object.metadata.labels["${LABEL}"] != "off"`,
  );
});
