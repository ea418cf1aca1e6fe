import { readFileSync } from 'node:fs';

/*
 * Loaded into a process before its program (`--import`). It shifts the process's wall clock from the machine's by the
 * milliseconds in the file OWN_CLOCK. Timers and the monotonic clock are unchanged, as when somebody sets a machine's
 * clock.
 */

const CHECK_EVERY_MS = 20;
const { OWN_CLOCK = '' } = process.env;
const MachineDate = Date;
const offset = (): number => Number(readFileSync(OWN_CLOCK, 'utf8'));
let aheadMs = offset();
setInterval(() => {
  aheadMs = offset();
}, CHECK_EVERY_MS).unref();

const now = (): number => MachineDate.now() + aheadMs;
globalThis.Date = new Proxy(MachineDate, {
  construct: (target, given, as) => Reflect.construct(target, given.length === 0 ? [now()] : given, as),
  get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
});
