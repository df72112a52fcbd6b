import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { SimulatedRuntime } from "@nodekeeper/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SLICES } from "../../packages/agent/src/devices/testing/device-cluster.ts";
import { startAgent } from "../support/agent.ts";
import { NODE, startCluster, type TestCluster } from "../support/cluster.ts";
import { lifecycleDifferences } from "../support/lifecycle-differences.ts";
import { deviceDifferences, evictionDifferences, publishedDifferences } from "./oracle.ts";
import type { Speaker } from "./peers.ts";
import { poolOf } from "./said.ts";

const said = { value: 7, burst: 0, bulk: 0, devices: 20 };
const speaker = (name: string) => ({ name, said }) as Speaker;

let cluster: TestCluster;
beforeEach(async () => {
  cluster = await startCluster();
});
afterEach(() => cluster.stop());

const putSlice = (resourceSliceCount: number) =>
  cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name: "slice" },
    spec: {
      driver: "driver",
      nodeName: NODE,
      pool: { name: NODE, generation: 1, resourceSliceCount },
      devices: poolOf(said).devices!.map(({ name, taints }) => ({ name, taints })),
    },
  });

describe("the soak's oracle finds", () => {
  it("values that are not published, or not the last ones", () => {
    const node = cluster.node();
    cluster.server.store.put({
      ...node,
      metadata: { ...node.metadata, labels: { "example.dev/a": "v6", "example.dev/left": "v1" } },
    });
    expect(publishedDifferences(cluster, [speaker("a")])).toEqual([
      "capacity widgets.example/a: nothing instead of 7",
      "label example.dev/a: v6 instead of v7",
      "label example.dev/left: v1 instead of nothing",
    ]);
  });

  it("devices that the scheduler would not give, or should not", () => {
    expect(deviceDifferences(cluster, [speaker("driver")])).toEqual([
      "18 devices are not allocatable: device-0-v7, device-10-v7, device-12, device-13, device-14 ...",
    ]);
    putSlice(2);
    expect(deviceDifferences(cluster, [speaker("driver")])).toContain(
      "devices of driver: 1 slices of 2 are there",
    );
    putSlice(1);
    expect(deviceDifferences(cluster, [speaker("driver")])).toEqual([]);
    expect(deviceDifferences(cluster, [])).toEqual([
      expect.stringMatching(/^18 devices are allocatable too many/),
    ]);
    expect(cluster.server.store.list(SLICES)).toHaveLength(1);
  });

  it("containers that the cache has in another state, or not at all", async () => {
    const runtime = new SimulatedRuntime({ clock: systemClock });
    const sandbox = runtime.runSandbox({ uid: "u", name: "web", namespace: "default" });
    const id = runtime.runContainer(sandbox, { name: "app" });
    const cached = {
      uid: "u",
      sandboxes: [{ id: sandbox, state: "running" }],
      containers: [{ id, state: "exited" }],
    };
    const client = (pods: object[]) => ({ getPods: async () => pods }) as never;
    expect(await lifecycleDifferences(client([cached]), runtime)).toEqual([
      `lifecycle u container ${id}: exited instead of running`,
    ]);
    expect(await lifecycleDifferences(client([]), runtime)).toHaveLength(2);
  });

  it("pods that were evicted twice, and evictions without an explanation", async () => {
    const stateDir = join(cluster.directory, "state");
    await startAgent(cluster, { stateDir }).then((agent) => agent.stop());
    const sent = { uid: "u", pod: "default/web", at: 0 };
    expect(await evictionDifferences([sent, sent], stateDir)).toEqual([
      "default/web was evicted 2 times",
      expect.stringMatching(/^the eviction of default\/web is not explained/),
    ]);
  });
});
