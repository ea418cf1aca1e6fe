type Defined<Fields> = {
  [Name in keyof Fields as undefined extends Fields[Name] ? never : Name]: Fields[Name];
} & {
  [Name in keyof Fields as undefined extends Fields[Name] ? Name : never]?: Exclude<Fields[Name], undefined>;
};

/** Returns the fields that are defined. A key with the value `undefined` is a key to stores and comparisons. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const some: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) some[name] = value;
  return some as Defined<Fields>;
}
