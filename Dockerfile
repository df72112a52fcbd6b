# The image for those who build with a container engine. `npm run image` makes the same contents without one.
FROM node:24-trixie-slim AS build
WORKDIR /src
COPY . .
RUN npm ci --no-audit --no-fund && npm run build
# The image has no env(1) in the place of this one's, and needs none. The option is as in packages/agent/src/launch.ts.
RUN sed -i '1s|.*|#!/usr/bin/node --no-concurrent-sweeping|' dist/nodekeeper/nodekeeper.js && rm dist/nodekeeper/example-*.js

FROM debian:trixie-slim
# The Node that the lock file names, by its hash, as in the archive of `npm run image`.
COPY --from=build /src/node_modules/node/bin/node /usr/bin/node
COPY --from=build /src/node_modules/node/node_modules/node-linux-*/LICENSE /usr/share/doc/node/copyright
COPY --from=build /src/dist/nodekeeper/*.js /src/dist/nodekeeper/package.json /src/dist/nodekeeper/LICENSE \
    /src/dist/nodekeeper/THIRD-PARTY-NOTICES.txt /src/dist/nodekeeper/sbom.cdx.json /nodekeeper/
COPY --from=build /src/dist/nodekeeper/page /nodekeeper/page
RUN ln -s /nodekeeper/nodekeeper.js /usr/bin/nodekeeper
# As in packages/agent/src/launch.ts: set here, the agent does not have to start over.
ENV MALLOC_TRIM_THRESHOLD_=131072 MALLOC_MMAP_THRESHOLD_=32768 MALLOC_ARENA_MAX=1
# Root only where the pod sets it: the container runtime's socket is root's.
USER 65532:65532
ENTRYPOINT ["/usr/bin/nodekeeper"]
CMD ["run"]
