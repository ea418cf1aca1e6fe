import { writeFileSync } from 'node:fs';
import { pages } from './pages.ts';

for (const { path, text } of await pages()) writeFileSync(path, text);
