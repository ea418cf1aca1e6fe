/** The name of a queue, as its URL ends. */
export function queueName(queueUrl: string): string {
  return queueUrl.slice(queueUrl.lastIndexOf('/') + 1);
}
