// The embedded API server with so many pods, for the benchmark of the watch: fork with PODS; it sends its URL.

import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { benchPods } from "./eviction-pods.ts";

const server = createDevApiServer({ clock: systemClock, log: silentLogger, checkFields: false });
const { url } = await server.start();
server.seedNode("bench");
for (const pod of benchPods(Number(process.argv[2]), "bench")) server.store.put(pod);
process.send?.(url);
