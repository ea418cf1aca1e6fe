import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const PAGE = join(import.meta.dirname, '../../../functions/console/page');

type Sources = ReadonlyMap<string, string>;

/** Returns the text from `from` to `end`, without everything in braces. */
function outsideBraces(source: string, from: number, end: string): string {
  let text = '';
  for (let at = from, depth = 0; at < source.length && (depth > 0 || source[at] !== end); at++) {
    if (source[at] === '{') depth += 1;
    if (depth === 0) text += source[at];
    if (source[at] === '}') depth -= 1;
  }
  return text;
}

/** Returns the props that a component destructures. `undefined`: the source does not define the component. */
function acceptedBy(component: string, source: string): ReadonlySet<string> | undefined {
  const found = new RegExp(`(?:function|const) ${component}(?:<\\w+>)?(?: = )?\\(\\{?`).exec(source);
  if (!found) return undefined;
  const props = found[0].endsWith('{') ? outsideBraces(source, found.index + found[0].length, '}') : '';
  return new Set(['key', ...props.split(',').map((prop) => /^\s*(\w*)/.exec(prop)?.[1] ?? '')]);
}

/** Returns the names in a tag. Without its braces it reads ` about=$ kind="plain" ...$ /`. */
const passedIn = (tag: string): readonly string[] =>
  [...tag.replace(/"[^"]*"/g, '').matchAll(/(?<=\s)\w[\w-]*/g)].map(([name]) => name);

/** Returns each prop that a template passes to a component that ignores it, and the number of components. */
function ignoredIn(sources: Sources): { readonly ignored: readonly string[]; readonly components: number } {
  const tags = [...sources].flatMap(([file, source]) => {
    // The names in `...${{ cluster, node: name }}` are props, too.
    const flat = source.replace(/\.\.\.\$\{\{([^{}]*)\}\}/g, (_, fields: string) =>
      fields.replace(/(\w+)(?:: [^,]*)?,?/g, '$1=$'),
    );
    return [...flat.matchAll(/<\$\{(\w+)\}/g)].map(({ 0: opening, 1: component = '', index }) => ({
      file,
      component,
      tag: outsideBraces(flat, index + opening.length, '>'),
    }));
  });
  const ignored = tags.flatMap(({ file, component, tag }) => {
    const homes = [sources.get(file) ?? '', ...sources.values()];
    const [accepted] = homes.flatMap((source) => acceptedBy(component, source) ?? []);
    return passedIn(tag)
      .filter((prop) => !accepted?.has(prop))
      .map((prop) => `${file}: ${component} ignores ${prop}`);
  });
  return { ignored, components: tags.length };
}

test('finds the props that a component ignores, in attributes and spread objects', () => {
  const defined = 'const Tag = ({ text, tone: { of }, size = 1 }: Props): VNode => 1; const Bar = () => 2;';
  const used = `
    html\`<@{Bar} wide /><@{Tag} key=@{1} text="a b" tone=@{html\`<@{Bar} />\`}
      look="plain" size=@{() => 3}>c</@{Tag}>
      <@{Tag} ...@{{ text, tone: f(x), hue }} ...@{more} />\``.replaceAll('@', '$');
  const sources = new Map(Object.entries({ 'a.ts': defined, 'b.ts': used }));
  const expected = ['b.ts: Bar ignores wide', 'b.ts: Tag ignores look', 'b.ts: Tag ignores hue'];
  assert.deepEqual(ignoredIn(sources), { ignored: expected, components: 4 });
});

// Nothing else checks them: TypeScript does not read the templates.
test('components of the page ignore no prop that the templates pass', () => {
  const files = globSync('**/*.ts', { cwd: PAGE });
  const { ignored, components } = ignoredIn(
    new Map(files.map((file) => [file, readFileSync(join(PAGE, file), 'utf8')])),
  );
  assert.deepEqual(ignored, []);
  assert.ok(components > 0);
});
