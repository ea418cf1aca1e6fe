/**
 * Returns the name of an alarm of the deployment with this prefix; with an empty `what`, the common prefix of all its
 * alarm names.
 */
export const alarmName = (prefix: string, what: string): string => `${prefix}: ${what}`;
