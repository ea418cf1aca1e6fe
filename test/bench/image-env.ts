/** The environment of a container, as in the Dockerfile. */
export const IMAGE_ENV = {
  NODE_ENV: 'production',
  NODE_OPTIONS: '--max-semi-space-size=1',
  MALLOC_ARENA_MAX: '2',
};
