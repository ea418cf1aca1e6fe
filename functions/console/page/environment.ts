/** What packages ask of the bundler that there is not: `@tanstack/virtual-core` reads it. */
Object.assign(globalThis, { process: { env: { NODE_ENV: 'production' } } });
