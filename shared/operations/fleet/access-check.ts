import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { type AccessAnswer, type AccessQuestion, accessAnswerSchema } from '#shared/access/access-check.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { parsedJson } from '#shared/text/parsed-json.ts';
import { readAs } from '#shared/text/read-as.ts';
import { FleetError } from './fleet.ts';

/** Asks `evict` whether it could work in a cluster. Rejects with `FleetError` if it cannot be invoked. */
export async function askEvict(
  client: LambdaClient,
  functionName: string,
  checkAccess: AccessQuestion['checkAccess'],
): Promise<AccessAnswer> {
  const { name, access, namespaces } = checkAccess;
  const question: AccessQuestion = { checkAccess: { name, access, namespaces } };
  const { FunctionError, Payload } = await invoked(client, functionName, question);
  const payload = Buffer.from(Payload ?? []).toString();
  if (FunctionError === undefined) {
    const { data } = readAs(accessAnswerSchema, parsedJson(payload));
    if (data !== undefined) return data;
  }
  throw new FleetError(
    `Function ${functionName} gave an unknown response about cluster ${name} (${payload.slice(0, 200)}). Deploy the release of this command.`,
  );
}

async function invoked(client: LambdaClient, FunctionName: string, question: AccessQuestion) {
  try {
    return await client.send(new InvokeCommand({ FunctionName, Payload: JSON.stringify(question) }));
  } catch (error) {
    throw new FleetError(
      `Function ${FunctionName} could not check the cluster (${errorMessage(error)}). Check table, account, region, and your permission lambda:InvokeFunction.`,
      { cause: error },
    );
  }
}
