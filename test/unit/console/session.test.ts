import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sessions } from '#shared/console/session.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

test('limits sessions and unopened links, and ends the oldest with the reason', () => {
  const sessions = new Sessions({ clock: new DrivenClock(NOW) });
  const open = () => {
    const session = sessions.open(sessions.link());
    assert.ok(session);
    return session;
  };
  const [first, second] = [open(), open()];
  for (let count = 0; count < 15; count++) open();
  assert.ok(first.ended.aborted);
  assert.equal(sessions.find(first.path, first.cookie), undefined);
  assert.equal(sessions.find(second.path, second.cookie), second);
  const links = Array.from({ length: 17 }, () => sessions.link());
  assert.equal(sessions.open(links[0] ?? ''), undefined);
  assert.ok(sessions.open(links[1] ?? ''));
});

test('ends all links together with all sessions', () => {
  const sessions = new Sessions({ clock: new DrivenClock(NOW) });
  const link = sessions.link();
  const open = sessions.open(sessions.link());
  sessions.close();
  assert.ok(open?.ended.aborted);
  assert.equal(sessions.open(link), undefined);
});

test('ends a session after twelve hours regardless of its use, with the reason', async () => {
  const clock = new DrivenClock(NOW);
  const sessions = new Sessions({ clock });
  const session = sessions.open(sessions.link());
  assert.ok(session);
  await clock.advanceTo(NOW + 12 * 3_600_000 - 1);
  assert.equal(sessions.find(session.path, session.cookie), session);
  await clock.advanceTo(NOW + 12 * 3_600_000);
  assert.equal(sessions.find(session.path, session.cookie), undefined);
  assert.ok(session.ended.aborted);
});

test('expires a link that is not opened for an hour', async () => {
  const clock = new DrivenClock(NOW);
  const sessions = new Sessions({ clock });
  const [soon, late] = [sessions.link(), sessions.link()];
  await clock.advanceTo(NOW + 3_599_999);
  assert.ok(sessions.open(soon));
  await clock.advanceTo(NOW + 3_600_000);
  assert.equal(sessions.open(late), undefined);
  assert.ok(sessions.open(sessions.link()));
});

test('gives each session secrets that are valid for no other', () => {
  const sessions = new Sessions({ clock: new DrivenClock(NOW) });
  const [one, other] = [sessions.open(sessions.link()), sessions.open(sessions.link())];
  assert.ok(one && other);
  const secrets = [one, other].flatMap(({ path, cookie, token }) => [path, cookie, token]);
  assert.equal(new Set(secrets).size, 6);
  for (const wrong of [other.cookie, one.token, one.path, '', undefined]) {
    assert.equal(sessions.find(one.path, wrong), undefined);
  }
  assert.equal(sessions.find('__proto__', one.cookie), undefined);
  sessions.close();
  assert.ok(one.ended.aborted && other.ended.aborted);
  assert.equal(sessions.find(one.path, one.cookie), undefined);
});
