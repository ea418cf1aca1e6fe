# All that runs outside of Lambda, one program each: relay.mjs, agent.mjs, and the whole service in one process, service.mjs. Nothing
# else is in the image but Node, what the programs load and read beside them, and what they are made of.
# No command names an absolute path, so the stages can be built without Docker, as a test does.

# JavaScript alone comes out, so it is built on the builder's own architecture.
FROM --platform=$BUILDPLATFORM public.ecr.aws/docker/library/node:24.21.0-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS build
WORKDIR /taintward
COPY package.json package-lock.json LICENSE ./
RUN npm ci --ignore-scripts
COPY cdk cdk
COPY deploy/build deploy/build
COPY shared shared
COPY simulator simulator
COPY functions functions
RUN node cdk/bundle-image.ts image

FROM public.ecr.aws/docker/library/node:24.21.0-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
LABEL org.opencontainers.image.title="Taintward" \
      org.opencontainers.image.description="Evicts the pods that do not tolerate their node's NoExecute taints" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/taintward/taintward" \
      org.opencontainers.image.documentation="https://github.com/taintward/taintward#readme"
# What a relay reads it soon forgets: a small young generation, and few arenas of native memory, keep a third less of it resident.
# Other programs say on their command line what suits them, which counts more.
ENV NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=1 MALLOC_ARENA_MAX=2
WORKDIR /taintward
COPY --from=build /taintward/image .
USER node
EXPOSE 8080
# As process 1, node takes SIGTERM itself.
CMD ["node", "relay.mjs"]
