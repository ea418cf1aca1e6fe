import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { type AccessAnswer, type AccessQuestion, accessAnswerSchema } from '#shared/clusters/access-check.ts';
import { errorMessage } from '#shared/error-message.ts';
import { readAs } from '#shared/read-as.ts';
import { FleetError } from './fleet.ts';

/** Has a deployed `evict`, by its name, say whether it could work in a cluster. Rejects with `FleetError` when it cannot be asked. */
export async function askEvict(
  client: LambdaClient,
  functionName: string,
  checkAccess: AccessQuestion['checkAccess'],
): Promise<AccessAnswer> {
  const { name, access } = checkAccess;
  const question: AccessQuestion = { checkAccess: { name, access } };
  const { FunctionError, Payload } = await invoked(client, functionName, question);
  const said = Buffer.from(Payload ?? []).toString();
  if (FunctionError === undefined) {
    const { data } = readAs(accessAnswerSchema, jsonOf(said));
    if (data !== undefined) return data;
  }
  throw new FleetError(
    `${functionName} does not answer whether it reaches cluster ${name} (it said ${said.slice(0, 200)}): deploy the release of this command.`,
  );
}

async function invoked(client: LambdaClient, FunctionName: string, question: AccessQuestion) {
  try {
    return await client.send(new InvokeCommand({ FunctionName, Payload: JSON.stringify(question) }));
  } catch (error) {
    throw new FleetError(
      `${FunctionName} cannot be asked whether it reaches the cluster (${errorMessage(error)}): check table, account and region, and that you have lambda:InvokeFunction on it.`,
      { cause: error },
    );
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
