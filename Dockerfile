# The relay, as the stack runs it on Fargate, as one file: nothing else is in the image but Node.
# No command names an absolute path, so the stages can be built without Docker, as a test does.

# JavaScript alone comes out, so it is built on the builder's own architecture.
FROM --platform=$BUILDPLATFORM public.ecr.aws/docker/library/node:24-slim AS build
WORKDIR /taintward
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY cdk/bundle.ts cdk/bundle-relay.ts cdk/bill-of-materials.ts cdk/
COPY shared shared
COPY functions/watch-relay functions/watch-relay
RUN node cdk/bundle-relay.ts relay

FROM public.ecr.aws/docker/library/node:24-slim
# What a relay reads it soon forgets: a small young generation, and few arenas of native memory, keep a third less of it resident.
ENV NODE_ENV=production NODE_OPTIONS="--enable-source-maps --max-semi-space-size=1" MALLOC_ARENA_MAX=2
WORKDIR /relay
COPY --from=build /taintward/relay .
USER node
EXPOSE 8080
# As process 1, node takes SIGTERM itself.
CMD ["node", "relay.mjs"]
