import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ALERTS_FILE, alertRules } from './alert-rules.ts';
import { promtool } from './promtool.ts';

const CASES = join(import.meta.dirname, 'alerts.test.yaml');

test('Prometheus accepts the alert rules', () => {
  promtool('check', 'rules', '--lint=all', '--lint-fatal', ALERTS_FILE);
});

test('each alert fires when it should, not before, and not in normal operation', () => {
  const cases = readFileSync(CASES, 'utf8');
  for (const { alert } of alertRules())
    assert.ok(
      cases.includes(`alertname="${alert}"`),
      `${alert} has no case: add one to test/prometheus/alerts.test.yaml`,
    );
  promtool('test', 'rules', CASES);
});
