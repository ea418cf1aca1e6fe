import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeOf } from '#shared/eviction/noted.ts';
import { aReason, aRecord, NOW } from '#test/contracts/partition-builders.ts';

const record = aRecord();
const held = (kind: 'observe' | 'stopped') => ({
  ...record,
  held: { by: kind === 'observe' ? { kind } : { kind, scope: 'fleet' as const }, since: NOW },
});

test('records no change when an eviction is scheduled, confirmed, or fails', () => {
  assert.equal(changeOf(undefined, record), undefined);
  assert.equal(changeOf(record, { ...record, version: { epoch: 9, sequence: 9 } }), undefined);
  assert.equal(changeOf(record, { ...record, failure: { since: NOW, error: 'no' } }), undefined);
});

test('records a moved deadline with the previous deadline', () => {
  const after = { ...record, dueAt: NOW, causes: [aReason('other')] };
  const from = { dueAt: record.dueAt, causes: record.causes };
  const note = changeOf(held('stopped'), after);
  assert.deepEqual(
    [note?.event, note?.dueAt, note?.event === 'rescheduled' && note.from],
    ['rescheduled', NOW, from],
  );
});

test('records a gate once for repeated observations', () => {
  const note = changeOf(record, held('stopped'));
  assert.deepEqual([note?.event, note && 'by' in note && note.by.kind], ['held', 'stopped']);
  assert.equal(changeOf(held('stopped'), held('stopped')), undefined);
  assert.equal(changeOf(held('observe'), held('stopped'))?.event, 'held');
});

test('records would-have in a cluster in observe mode', () => {
  assert.equal(changeOf(record, held('observe'))?.event, 'would-evict');
});

test('records a release with the gate that ended', () => {
  const note = changeOf(held('observe'), record);
  assert.deepEqual([note?.event, note && 'by' in note && note.by.kind], ['released', 'observe']);
});

test('records once that a disruption budget blocks an eviction', () => {
  const blocked = { ...record, blocked: { since: NOW, nextTryAt: NOW + 1, reason: 'no' } };
  const note = changeOf(record, blocked);
  assert.deepEqual([note?.event, note && 'error' in note && note.error], ['blocked', 'no']);
  assert.equal(
    changeOf(blocked, { ...blocked, blocked: { ...blocked.blocked, nextTryAt: NOW + 2 } }),
    undefined,
  );
});

test('records a failed eviction once', () => {
  const gaveUp = { ...record, failure: { since: NOW, error: 'no' }, gaveUpAt: NOW };
  const note = changeOf(record, gaveUp);
  assert.deepEqual([note?.event, note && 'error' in note && note.error], ['failed', 'no']);
  assert.equal(changeOf(gaveUp, gaveUp), undefined);
  const unsaid = changeOf(record, { ...record, gaveUpAt: NOW });
  assert.equal(unsaid && 'error' in unsaid && unsaid.error, '');
});
