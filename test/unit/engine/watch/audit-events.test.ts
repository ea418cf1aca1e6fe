import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVENT_KB, quietHour } from '#test/costs/audit-events.ts';
import { guideHas, rowText } from '#test/costs/guide-rows.ts';
import { PRICES, perMillion, SECONDS_A_MONTH } from '#test/costs/prices.ts';

const total = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

for (const tainted of [false, true])
  test(`a quiet cluster ${tainted ? 'with' : 'without'} a tainted node writes at most 3 audit events a minute, as its costs say`, async (context) => {
    const counted = await quietHour(context, { tainted });
    context.diagnostic(JSON.stringify(counted));
    const aMinute = total(counted);
    assert.ok(aMinute <= 3, `${aMinute}`);
    const node = tainted ? 'one tainted node, nothing due' : 'no tainted node';
    assert.ok(guideHas(rowText(node, aMinute.toFixed(1))), `${node}: ${aMinute.toFixed(1)}`);
  });

test('the costs page has the audit logs of 1, 10, and 100 clusters with 3 events a minute', () => {
  for (const clusters of [1, 10, 100]) {
    const events = (clusters * 3 * SECONDS_A_MONTH) / 60;
    const gb = (events * EVENT_KB) / 1e6;
    const row = rowText(
      `${clusters}`,
      `${(events / 1e6).toFixed(2)} million`,
      `${gb.toFixed(1)} GB`,
      (gb * PRICES.logsPerGb).toFixed(2),
      perMillion(events, PRICES.guardDutyPerMillion).toFixed(2),
    );
    assert.ok(guideHas(row), `docs/reference/quotas-and-costs.md is to say:\n${row}`);
  }
});
