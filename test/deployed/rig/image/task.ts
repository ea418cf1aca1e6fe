import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Launch } from '../relay-process.ts';
import { type Image, NODE_DIR } from './build.ts';

/** Users of the base image, by their numeric IDs there. */
const USERS: Readonly<Record<string, number>> = { node: 1000 };

/** The stand-in returns this part in CloudFormation's spelling, with capital initials. */
const asEcsSpells = (value: unknown): unknown =>
  Object.fromEntries(
    Object.entries(value ?? {}).map(([name, each]) => [name.slice(0, 1).toLowerCase() + name.slice(1), each]),
  );

const Container = z.object({
  image: z.string(),
  user: z.string(),
  readonlyRootFilesystem: z.boolean(),
  environment: z.array(z.object({ name: z.string(), value: z.string() })),
  healthCheck: z.preprocess(asEcsSpells, z.object({ command: z.array(z.string()) })),
});

/** The fields that are read of a task definition, as ECS describes it. */
export const TaskDefinition = z.object({
  taskDefinition: z.object({ containerDefinitions: z.tuple([Container]) }),
});
export type TaskDefinition = z.infer<typeof TaskDefinition>;

/**
 * Returns the launch of a definition's task without containers: the image's command in its folders, with the
 * environment and, where permitted, the user of definition and image. In place of a read-only file system, Node's
 * permissions deny all writes.
 */
export function taskLaunch({ taskDefinition }: TaskDefinition, imageOf: (name: string) => Image): Launch {
  const [{ image: name, user, readonlyRootFilesystem, environment, healthCheck }] =
    taskDefinition.containerDefinitions;
  const image = imageOf(name);
  const program = (word: string): string => {
    const inImage = join(image.root, NODE_DIR, word);
    return existsSync(inImage) ? inImage : word;
  };
  const [command = '', ...args] = image.command;
  const [how, healthCommand = '', ...healthArgs] = healthCheck.command;
  if (how !== 'CMD') throw new Error(`A health check by ${how} is not one that is run here.`);
  const uid = USERS[user];
  if (uid === undefined) throw new Error(`The base image has no user ${user}.`);
  const options = [image.env['NODE_OPTIONS'], ...(readonlyRootFilesystem ? READ_ONLY : [])];
  return {
    program: program(command),
    args,
    cwd: join(image.root, image.workdir),
    env: {
      ...image.env,
      ...Object.fromEntries(environment.map(({ name: variable, value }) => [variable, value])),
      NODE_OPTIONS: options.filter(Boolean).join(' '),
    },
    health: { program: program(healthCommand), args: healthArgs },
    ...(process.getuid?.() === 0 ? { uid } : {}),
  };
}

const READ_ONLY = ['--permission', '--allow-fs-read=*'];
