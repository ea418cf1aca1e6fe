/** The name of an alarm of the deployment whose names begin with `prefix`; without `what`, what all their names begin with. */
export const alarmName = (prefix: string, what: string): string => `${prefix}: ${what}`;
