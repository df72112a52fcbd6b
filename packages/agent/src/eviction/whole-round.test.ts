import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ThresholdMetType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { createKubeClient, createKubeMetrics, type KubeApiClient } from "@nodekeeper/core/kube";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer, type DevApiServer } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import type { Server } from "nice-grpc";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HistoryStore } from "../state/index.ts";
import { createEvictionMetrics } from "./metrics.ts";
import { PodWatch } from "./observe/pod-watch.ts";
import { RecordQueries } from "./records/record-queries.ts";
import { TestAgent } from "./testing/manager-setup.ts";
import { jsonPod } from "./testing/round-parts.ts";
import { namesOf, testNode } from "./testing/rounds.ts";
import { offeredNames, podBytes, registrationOf, servePlugin } from "./testing/socket-plugin.ts";

let directory: string;
let server: DevApiServer;
let client: KubeApiClient;
let watch: PodWatch;
let stop: AbortController;
let watching: Promise<void>;
const plugins: Server[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nke-"));
  server = createDevApiServer({ clock: systemClock, log: silentLogger });
  const { url } = await server.start();
  const registry = new Registry();
  const kubeMetrics = createKubeMetrics(registry);
  const common = { clock: systemClock, log: silentLogger };
  const access = { source: "test", server: new URL(url) };
  client = createKubeClient({ access, version: "1.2.3", metrics: kubeMetrics, ...common });
  const metrics = createEvictionMetrics(registry);
  watch = new PodWatch({ client, nodeName: testNode, kubeMetrics, metrics, ...common });
  stop = new AbortController();
  watching = watch.run(stop.signal);
});
afterEach(async () => {
  stop.abort();
  await watching;
  client.close();
  for (const plugin of plugins.splice(0)) plugin.forceShutdown();
  await server.stop();
  rmSync(directory, { recursive: true });
});

it("evicts the pod that a plugin on a socket names, beside one that hangs, also while the API server is unavailable", async () => {
  for (const [name, priority] of [
    ["low", 1],
    ["high", 9],
    ["critical", 2_000_001_000],
  ] as const) {
    server.store.put(jsonPod(name, { spec: { priority } }));
  }
  await until("the pods are listed", () => watch.isSynced);
  await server.stop();

  const offered: string[] = [];
  const good = join(directory, "good.sock");
  plugins.push(
    await servePlugin(good, {
      thresholdMet: async () => ({
        metType: ThresholdMetType.HARD_MET,
        evictionScope: "memory",
        observedValue: 3,
      }),
      getTopEvictionPods: async (request) => {
        offered.push(...offeredNames(request));
        const low = watch.list().find(({ pod }) => pod.name === "low")!;
        return { targetPods: [podBytes(low.pod.uid, "low")] };
      },
    }),
  );
  const hung = join(directory, "hung.sock");
  const never = () => new Promise<never>(() => {});
  plugins.push(await servePlugin(hung, { thresholdMet: never, getEvictPods: never }));

  const agent = new TestAgent(directory, watch, [], systemClock);
  agent.settings = { ...agent.settings, syncPeriod: 1_000 };
  await agent.plugins.register(registrationOf("good", good), stop.signal);
  await agent.plugins.register(registrationOf("hung", hung), stop.signal);
  agent.start();
  await until("an eviction starts", () => agent.evictor.started.length > 0);
  expect(namesOf(agent.evictor.started)).toEqual(["low"]);
  expect([...new Set(offered)].sort()).toEqual(["high", "low"]);
  const { signal } = new AbortController();
  const { rounds } = await new RecordQueries(agent.records, new HistoryStore(agent.database)).explainPod(
    "default/low",
    signal,
  );
  // A busy machine may have let rounds pass in which the good one was late, too.
  expect(rounds.find(({ victim }) => victim)).toMatchObject({
    victim: { plugin: "good", reason: expect.stringContaining("memory 3 < threshold 0") },
    // Of the other one's two calls, the one that this does not depend on may have been late as well.
    failures: expect.arrayContaining([
      expect.objectContaining({ plugin: "hung", call: "getEvictPods" }),
      expect.objectContaining({ plugin: "hung", call: "thresholdMet" }),
    ]),
  });
  expect(agent.plugins.healthCheck().check().message).toContain("hung: ");
  await agent.stop();
});
