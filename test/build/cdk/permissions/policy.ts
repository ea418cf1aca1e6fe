import type { Statement } from '#test/build/cdk/stack/resources.ts';

/** What somebody asks IAM for, by making a call. */
export interface IamRequest {
  readonly action: string;
  /** An ARN. */
  readonly resource: string;
  /** Keys that are not there are absent, and never empty. */
  readonly context: Readonly<Record<string, readonly string[]>>;
}

/** Statements of a policy that is attached to a resource, and of which. */
export interface ResourcePolicy {
  readonly resource: string;
  readonly statements: readonly Statement[];
}

type Operator = (value: string, wanted: string) => boolean;

const equal: Operator = (value, wanted) => value === wanted;
const like: Operator = (value, wanted) => patternOf(wanted).test(value);

/** By their names; a negated one holds of a value that matches none of those that are given. */
const OPERATORS: Readonly<Record<string, { readonly matches: Operator; readonly negated: boolean }>> = {
  ArnEquals: { matches: like, negated: false },
  ArnLike: { matches: like, negated: false },
  ArnNotEquals: { matches: like, negated: true },
  Bool: { matches: equal, negated: false },
  StringEquals: { matches: equal, negated: false },
  StringNotEquals: { matches: equal, negated: true },
  StringLike: { matches: like, negated: false },
  StringNotLike: { matches: like, negated: true },
};

/**
 * Whether IAM lets somebody of this account, by the statements of his policies and of the resource's. Who else asks, and what
 * organisations, boundaries and sessions take away, is left out: the stack has nothing of these. Throws for what a policy
 * says beyond that.
 */
export function allows(
  identity: readonly Statement[],
  resources: readonly ResourcePolicy[],
  request: IamRequest,
): boolean {
  const attached = resources.filter(({ resource }) => request.resource.startsWith(resource));
  const applying = [...identity, ...attached.flatMap(({ statements }) => statements)].filter((statement) =>
    applies(statement, request),
  );
  return (
    applying.every(({ Effect }) => Effect !== 'Deny') && applying.some(({ Effect }) => Effect === 'Allow')
  );
}

function applies({ Action, Resource, Condition }: Statement, request: IamRequest): boolean {
  const conditions = Object.entries((Condition ?? {}) as Record<string, Record<string, string | string[]>>);
  return (
    // Actions are the one thing in which case does not matter.
    Action.some((action) => like(request.action.toLowerCase(), action.toLowerCase())) &&
    Resource.some((resource) => like(request.resource, resource)) &&
    conditions.every(([operator, keys]) =>
      Object.entries(keys).every(([key, wanted]) => holds(operator, request.context[key], [wanted].flat())),
    )
  );
}

/**
 * IAM User Guide, "Condition operators" and "Single-valued vs. multivalued context keys". Of a key that is absent `Null`
 * alone and `ForAllValues` hold, and what is negated.
 */
function holds(name: string, values: readonly string[] | undefined, wanted: readonly string[]): boolean {
  if (name === 'Null') return wanted.includes(String(values === undefined));
  const [, set, base = ''] = /^(?:(ForAllValues|ForAnyValue):)?(\w+)$/.exec(name) ?? [];
  const operator = OPERATORS[base];
  if (!operator || (values !== undefined && values.length === 0)) {
    throw new Error(`the condition ${name} on ${JSON.stringify(values)} is not understood`);
  }
  const fits = (value: string) => wanted.some((each) => operator.matches(value, each)) !== operator.negated;
  if (values === undefined) return set === 'ForAllValues' || (set === undefined && operator.negated);
  if (set === 'ForAllValues') return values.every(fits);
  if (set === undefined && values.length > 1) throw new Error(`${name} on several values`);
  return values.some(fits);
}

/** `*` and `?` stand for any characters, slashes and colons among them. */
function patternOf(text: string): RegExp {
  if (text.includes('${')) throw new Error(`the variable in ${text} is not understood`);
  const escaped = text.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's');
}
