import type { Statement } from '#test/build/cdk/stack/resources.ts';

/** The IAM request of a call. */
export interface IamRequest {
  readonly action: string;
  /** An ARN. */
  readonly resource: string;
  /** Missing keys are absent; no list is empty. */
  readonly context: Readonly<Record<string, readonly string[]>>;
}

/** The statements of a policy that is attached to a resource, with that resource. */
export interface ResourcePolicy {
  readonly resource: string;
  readonly statements: readonly Statement[];
}

type Operator = (value: string, wanted: string) => boolean;

const equal: Operator = (value, wanted) => value === wanted;
const like: Operator = (value, wanted) => patternOf(wanted).test(value);

/** IAM's condition operators by name. A negated operator holds for a value that matches none of the given ones. */
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
 * Reports whether IAM allows a request by a principal of this account, given the statements of its policies and of the
 * resource's. Other accounts' principals, and the limits of organizations, boundaries, and sessions are left out: the
 * stack has none of these. Throws for policy elements beyond that.
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
    // Only actions are case-insensitive.
    Action.some((action) => like(request.action.toLowerCase(), action.toLowerCase())) &&
    Resource.some((resource) => like(request.resource, resource)) &&
    conditions.every(([operator, keys]) =>
      Object.entries(keys).every(([key, wanted]) => holds(operator, request.context[key], [wanted].flat())),
    )
  );
}

/**
 * IAM User Guide, "Condition operators" and "Single-valued vs. multivalued context keys". For an absent key only
 * `Null`, `ForAllValues`, and negated operators hold.
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

/** `*` and `?` match any characters, including slashes and colons. */
function patternOf(text: string): RegExp {
  if (text.includes('${')) throw new Error(`the variable in ${text} is not understood`);
  const escaped = text.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's');
}
