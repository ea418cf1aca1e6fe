/** Variables that `@tanstack/virtual-core` expects from a bundler. This page has no bundler. */
Object.assign(globalThis, { process: { env: { NODE_ENV: 'production' } } });
