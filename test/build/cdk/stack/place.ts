import type { Template } from 'aws-cdk-lib/assertions';

/** The partition and region of a stack. */
export interface Place {
  readonly partition: string;
  readonly region: string;
  /** The suffix of the service endpoints' names. */
  readonly urlSuffix: string;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns the template as CloudFormation reads it in a place. Values that CloudFormation knows beforehand are filled
 * in; attributes of resources that do not exist yet are `<Id>` or `<Id.Attribute>`.
 */
export function readIn({ partition, region, urlSuffix }: Place, template: Template): Fields {
  const { Conditions: conditions = {}, ...rest } = template.toJSON() as { Conditions?: Fields };
  const known: Readonly<Record<string, string>> = {
    'AWS::Partition': partition,
    'AWS::Region': region,
    'AWS::URLSuffix': urlSuffix,
    'AWS::AccountId': '111122223333',
  };
  const nameOf = (name: string) => known[name] ?? `<${name}>`;
  const read = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(read);
    if (typeof value !== 'object' || value === null) return value;
    const [[name = '', operand] = []] = Object.entries(value);
    switch (name) {
      case 'Ref':
        return nameOf(String(operand));
      case 'Fn::GetAtt':
        return `<${(operand as string[]).join('.')}>`;
      case 'Fn::Sub':
        return String(operand).replace(/\$\{([^}]+)\}/g, (_, each: string) => nameOf(each));
      case 'Fn::Join': {
        const [separator, parts] = read(operand) as [string, string[]];
        return parts.join(separator);
      }
      case 'Fn::If': {
        const [condition, then, otherwise] = operand as [string, unknown, unknown];
        return read(isTrue(conditions[condition]) ? then : otherwise);
      }
      default:
        return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, read(each)]));
    }
  };
  const isTrue = (condition: unknown): boolean => {
    const [left, right] = read((condition as Fields)['Fn::Equals']) as [string, string];
    return left === right;
  };
  return read(rest) as Fields;
}
