import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';

const fileOf = (name: string): string => join(import.meta.dirname, 'measured', `${name}.json`);

/** Keeps what a script measured. */
export function writeMeasured(name: string, measured: object): void {
  writeFileSync(fileOf(name), `${JSON.stringify(measured, undefined, 2)}\n`);
}

/** What a script measured, as it was kept. */
export const readMeasured = (name: string): unknown => JSON.parse(readFileSync(fileOf(name), 'utf8'));

/** When and on what something is measured that depends on it. */
export const machine = () => ({
  on: new Date().toISOString().slice(0, 10),
  machine: `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`,
});
