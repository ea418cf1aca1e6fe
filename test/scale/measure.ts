import { Argument, Command } from 'commander';

/** What is measured, by the file that keeps it. */
const PARTS = ['counts', 'relay', 'storm'];

await new Command('scale:measure')
  .description('Measures what the model of scale is made of, and keeps it in test/scale/measured.')
  .addArgument(new Argument('[part]', 'one part; without: all of them').choices(PARTS))
  .action(async (part?: string) => {
    for (const each of part === undefined ? PARTS : [part]) await import(`./measure-${each}.ts`);
  })
  .parseAsync();
// Relays in driven time would wait for ever.
process.exit();
