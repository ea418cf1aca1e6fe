import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CliDeps } from './command.ts';
import { createProgram } from './program.ts';
import { referenceOf } from './reference.ts';

const PAGE = join(import.meta.dirname, '../../docs/cli.md');

// Nothing of it is run.
writeFileSync(PAGE, referenceOf(createProgram({} as CliDeps)));
