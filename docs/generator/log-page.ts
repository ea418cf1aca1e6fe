import type { Node } from 'typescript/unstable/ast';
import { isCallExpression, isPropertyAccessExpression } from 'typescript/unstable/ast/is';
import {
  type Checker,
  isUnionType,
  type Symbol as Property,
  SymbolFlags,
  type Type,
  TypeFlags,
} from 'typescript/unstable/sync';
import type { Severity } from '#shared/telemetry/log.ts';
import { declaredType, type ServiceCode, typeOf } from './service-code.ts';
import { table } from './table.ts';

const SEVERITIES: readonly string[] = ['info', 'warn', 'error'] satisfies readonly Severity[];

interface Event {
  readonly name: string;
  readonly levels: ReadonlySet<string>;
  readonly fields: readonly Property[];
  readonly meaning: string;
}

/** Returns docs/reference/log-events.md, from the type `LogEvents` and the calls that log each event. */
export function logPage(code: ServiceCode): string {
  const { checker } = code;
  const events = eventsOf(code);
  const rows = events.map(({ name, levels, fields, meaning }) => [
    `\`${name}\``,
    [...levels].sort().join(', '),
    fields.map(fieldText).join(' '),
    meaning,
  ]);
  return `# Log events

<!-- Made from the code by npm run docs. -->

Look up a log event and its fields. The functions on AWS, the relay, and \`npm start -- --log json\` write one JSON line for each change of state. Each line has these fields:

- \`level\`: \`info\`, \`warn\`, or \`error\`.
- \`time\`: RFC 3339, in UTC.
- \`event\`: one of the events below.
- The fields of the event. A field with \`?\` can be missing.
- In functions, one of \`messageId\` (the line is about a message), \`delta\` (the message is a delta), and \`requestId\` (all other lines).

The relay assigns each delta an ID, \`delta\`: the epoch of the lease and a counter. The ID is unique in its cluster. The delta functions store
it with each eviction that they schedule, and \`evict\` logs it with each pod that it evicts. Lines about an eviction have the ID of the delta that
changed it last. To follow an ID through all logs, see [Query evictions in the logs](../how-to/query-evictions.md).

Fields that end in \`At\`, and \`at\` and \`since\`, are times in milliseconds since 1970. Fields that end in \`Ms\` are durations in milliseconds.
\`error\` and most values of \`reason\` are messages for people. Their wording can change in any release.

## Events

${table(['event', 'level', 'fields', 'meaning'], rows)}

## Fields

${fieldTable(events, checker)}
`;
}

function eventsOf(code: ServiceCode): readonly Event[] {
  const { checker, files } = code;
  const type = declaredType(code, 'shared/telemetry/log-events.ts', 'LogEvents');
  const levels = levelsByEvent(checker, files);
  return checker.getPropertiesOfType(type).map((property) => ({
    name: property.name,
    levels: levels.get(property.name) ?? unlogged(property.name),
    fields: checker.getPropertiesOfType(typeOf(checker, property)),
    meaning: checker.getDocumentationCommentOfSymbol(property).replaceAll('\n', ' '),
  }));
}

function unlogged(event: string): never {
  throw new Error(`nothing logs ${event}: take it out of LogEvents`);
}

/** Returns the log methods that log each event. */
function levelsByEvent(checker: Checker, files: readonly Node[]): ReadonlyMap<string, ReadonlySet<string>> {
  const levels = new Map<string, Set<string>>();
  const visit = (node: Node): void => {
    if (isCallExpression(node) && isPropertyAccessExpression(node.expression)) {
      const level = node.expression.name.text;
      const [event] = node.arguments;
      const type = event && SEVERITIES.includes(level) ? checker.getTypeAtLocation(event) : undefined;
      for (const name of type ? literals(type) : []) {
        levels.set(name, (levels.get(name) ?? new Set()).add(level));
      }
    }
    node.forEachChild(visit);
  };
  for (const file of files) visit(file);
  return levels;
}

function literals(type: Type): readonly string[] {
  if (isUnionType(type)) return type.getTypes().flatMap(literals);
  return type.flags & TypeFlags.StringLiteral ? [String((type as Type & { value: unknown }).value)] : [];
}

function fieldTable(events: readonly Event[], checker: Checker): string {
  const kinds = new Map<string, Set<string>>();
  for (const { fields } of events) {
    for (const field of fields) {
      kinds.set(
        field.name,
        (kinds.get(field.name) ?? new Set()).add(kindOf(checker, typeOf(checker, field))),
      );
    }
  }
  const rows = [...kinds].sort(([a], [b]) => (a < b ? -1 : 1));
  return table(
    ['field', 'JSON'],
    rows.map(([name, kind]) => [`\`${name}\``, [...kind].join('; ')]),
  );
}

/** Returns the JSON type of a value of this type; an error becomes its message. */
function kindOf(checker: Checker, type: Type): string {
  const text = literals(type).map((each) => `\`${each}\``);
  if (text.length > 0) return text.join(', ');
  if (type.flags & TypeFlags.Unknown) return 'string';
  const some = checker.getNonNullableType(type) ?? type;
  if (checker.isArrayType(some)) {
    const [item] = checker.getTypeArguments(some as never);
    return `list of ${item ? kindOf(checker, item) : 'values'}s`;
  }
  if (checker.isTypeAssignableTo(some, checker.getStringType())) return 'string';
  if (checker.isTypeAssignableTo(some, checker.getNumberType())) return 'number';
  if (checker.isTypeAssignableTo(some, checker.getBooleanType())) return 'boolean';
  return 'object';
}

const fieldText = ({ name, flags }: Property): string =>
  `\`${name}${flags & SymbolFlags.Optional ? '?' : ''}\``;
