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

test('reads the chosen namespaces from the current selector and from that with the former label values', () => {
  assert.deepEqual(chosenNamespaces(selectedNamespaces(chosen)), chosen);
  const former = [
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
    { key: LABEL, operator: 'NotIn', values: ['off'] },
    { key: LABEL, operator: 'In', values: ['on'] },
  ] as const;
  assert.deepEqual(chosenNamespaces(former), [former[2]]);
});

test('accepts both the current and former label values for opting in and out', () => {
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
