import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/*
 * `apply.ts CDK_OUT`: sets the loop setting of deployed functions (`RecursiveLoop`) from their templates.
 * CloudFormation does so; the stand-in's ignores that property, though its Lambda supports it.
 */

const Template = z.object({
  Resources: z.record(
    z.string(),
    z.looseObject({
      Type: z.string(),
      Properties: z
        .looseObject({ FunctionName: z.unknown().optional(), RecursiveLoop: z.string().optional() })
        .optional(),
    }),
  ),
});

const [, , folder = ''] = process.argv;
const { AWS_ENDPOINT_URL } = process.env;
for (const file of globSync('*.template.json', { cwd: folder })) {
  const { Resources } = Template.parse(JSON.parse(readFileSync(join(folder, file), 'utf8')));
  for (const { Type, Properties } of Object.values(Resources)) {
    const { FunctionName, RecursiveLoop = 'Terminate' } = Properties ?? {};
    if (Type !== 'AWS::Lambda::Function' || typeof FunctionName !== 'string') continue;
    const answer = await fetch(`${AWS_ENDPOINT_URL}/2024-08-31/functions/${FunctionName}/recursion-config`, {
      method: 'PUT',
      body: JSON.stringify({ RecursiveLoop }),
    });
    // A template may be of a stack that is not deployed.
    if (!answer.ok && answer.status !== 404) throw new Error(`${FunctionName}: ${await answer.text()}`);
  }
}
