import {
  type Checker,
  isUnionType,
  type Symbol as Property,
  SymbolFlags,
  type Type,
  TypeFlags,
} from 'typescript/unstable/sync';
import { withTimes } from '#functions/cli/output.ts';
import { declaredType, type ServiceCode, typeOf } from './service-code.ts';

type Schema = Readonly<Record<string, unknown>>;

/** The form of fields that hold a time: ISO 8601, as commands print them, or milliseconds since 1970. */
export type TimeForm = 'iso' | 'ms';

/** The schema of a field, by its name. */
export interface Named {
  readonly name: string;
  readonly schema: Schema;
}

/** Returns the JSON Schema of each field of an interface in outputs.ts. Objects have only declared fields. */
export function schemasOf(
  code: ServiceCode,
  name: 'Outputs' | 'PageInputs',
  times: TimeForm,
): readonly Named[] {
  const { checker } = code;
  const type = declaredType(code, 'docs/generator/outputs.ts', name);
  return checker.getPropertiesOfType(type).map((property) => ({
    name: property.name,
    schema: new SchemaWriter(checker, times).schemaOf(typeOf(checker, property)),
  }));
}

/** Writes one schema. Named types are its definitions. */
class SchemaWriter {
  readonly #checker: Checker;
  readonly #times: TimeForm;
  readonly #names = new Map<number, string>();
  readonly #definitions: Record<string, Schema> = {};

  constructor(checker: Checker, times: TimeForm) {
    this.#checker = checker;
    this.#times = times;
  }

  schemaOf(type: Type): Schema {
    const schema = this.#of(type);
    const definitions = Object.entries(this.#definitions).sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      ...schema,
      ...(definitions.length === 0 ? {} : { $defs: Object.fromEntries(definitions) }),
    };
  }

  /** `field`: name of the field that has this type. */
  #of(type: Type, field = ''): Schema {
    if (type.flags & (TypeFlags.Any | TypeFlags.Unknown)) return {};
    const present = presentOf(this.#checker, type);
    if (present !== type) return this.#of(present, field);
    if (isUnionType(type)) return this.#named(type, field);
    if (type.isLiteralType()) return { const: type.value };
    if (type.flags & (TypeFlags.StringLike | TypeFlags.TemplateLiteral)) return { type: 'string' };
    if (type.flags & TypeFlags.Number) return this.#isTime(field) ? ISO : { type: 'number' };
    if (type.flags & TypeFlags.Boolean) return { type: 'boolean' };
    if (type.flags & TypeFlags.Null) return { type: 'null' };
    // A branded string.
    if (type.isIntersectionType() && type.getTypes().some(({ flags }) => flags & TypeFlags.String))
      return { type: 'string' };
    if (this.#checker.isArrayType(type)) return { type: 'array', items: this.#of(this.#items(type)[0]) };
    if (this.#checker.isTupleType(type)) return this.#tuple(type);
    return this.#named(type, field);
  }

  #isTime(field: string): boolean {
    return this.#times === 'iso' && typeof withTimes(0, field) === 'string';
  }

  #items(type: Type): readonly [Type, ...Type[]] {
    return this.#checker.getTypeArguments(type as never) as unknown as readonly [Type, ...Type[]];
  }

  #tuple(type: Type): Schema {
    const { fixedLength, elementFlags } = (type as unknown as { getTarget(): Tuple }).getTarget();
    const required = elementFlags.filter((flags) => flags === REQUIRED).length;
    const prefixItems = this.#items(type)
      .slice(0, fixedLength)
      .map((item) => this.#of(item));
    return { type: 'array', prefixItems, minItems: required, items: false };
  }

  /** A definition for a type with a name. Generic types have none, as their name is not enough. */
  #named(type: Type, field: string): Schema {
    const known = this.#names.get(type.id);
    if (known !== undefined) return { $ref: `#/$defs/${known}` };
    const form = () => (isUnionType(type) ? this.#union(type.getTypes(), field) : this.#object(type));
    const { aliasTypeArguments = [] } = type as { readonly aliasTypeArguments?: readonly unknown[] };
    const name = ((type as Aliased).getAliasSymbol() ?? type.getSymbol())?.name ?? '';
    const isGeneric = aliasTypeArguments.length > 0;
    if (!/^[A-Z]\w*$/.test(name) || isGeneric || name in this.#definitions) return form();
    this.#names.set(type.id, name);
    // Reserves the name for a type that contains itself.
    this.#definitions[name] = {};
    this.#definitions[name] = form();
    return { $ref: `#/$defs/${name}` };
  }

  #union(types: readonly Type[], field: string): Schema {
    const has = (type: Type, flags: TypeFlags) => (type.flags & flags) !== 0;
    const literals = types.flatMap((type) => (has(type, TypeFlags.StringLiteral) ? literalOf(type) : []));
    const isBoolean = types.filter((type) => has(type, TypeFlags.BooleanLiteral)).length > 1;
    const others = types.filter(
      (type) =>
        !has(type, TypeFlags.StringLiteral | TypeFlags.Undefined) &&
        !(isBoolean && has(type, TypeFlags.BooleanLiteral)),
    );
    const forms = [
      ...(literals.length === 0 ? [] : [{ enum: literals.sort() }]),
      ...(isBoolean ? [{ type: 'boolean' }] : []),
      ...others.map((type) => this.#of(type, field)),
    ];
    const [only] = forms;
    return only && forms.length === 1 ? only : { anyOf: forms };
  }

  #object(type: Type): Schema {
    const checker = this.#checker;
    if (checker.getSignaturesOfType(type, 0).length > 0)
      throw new Error(`${checker.typeToString(type)} is no data`);
    const properties: Record<string, Schema> = {};
    const required: string[] = [];
    for (const property of checker.getPropertiesOfType(type)) {
      const { name } = property;
      const its = typeOf(checker, property);
      if (its.flags & TypeFlags.Undefined) continue;
      const description = meaningOf(checker, property);
      properties[name] = { ...(description === '' ? {} : { description }), ...this.#of(its, name) };
      const isOptional = (property.flags & SymbolFlags.Optional) !== 0 || presentOf(checker, its) !== its;
      if (!isOptional) required.push(name);
    }
    const [index] = checker.getIndexInfosOfType(type);
    return {
      type: 'object',
      properties,
      ...(required.length === 0 ? {} : { required }),
      additionalProperties: index ? this.#of(index.valueType) : false,
    };
  }
}

const ISO = { type: 'string', format: 'date-time' };

interface Aliased extends Type {
  getAliasSymbol(): Property | undefined;
}

interface Tuple {
  readonly fixedLength: number;
  readonly elementFlags: readonly number[];
}
const REQUIRED = 1;

const literalOf = (type: Type): string => (type as Type & { readonly value: string }).value;

/** Returns a type without `undefined`, under its own name if it has one. */
function presentOf(checker: Checker, type: Type): Type {
  if (!isUnionType(type)) return type;
  const flags = type.getTypes().reduce((all, each) => all | each.flags, 0);
  return flags & TypeFlags.Undefined && !(flags & TypeFlags.Null)
    ? (checker.getNonNullableType(type) ?? type)
    : type;
}

const meaningOf = (checker: Checker, property: Property): string =>
  checker
    .getDocumentationCommentOfSymbol(property)
    .replaceAll(/\{@link (\w+)\}/g, '`$1`')
    .replaceAll(/\s+/g, ' ')
    .trim();
