import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { startCluster } from "./support/cluster.ts";
import { useEvictionNode } from "./support/eviction-node.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
  untilNextRounds,
} from "./support/eviction-plugin.ts";

const HOUR_MS = 3_600_000;

const node = useEvictionNode({ clock: () => new SteppedClock() });
let plugin: TestEvictionPlugin;

async function start(flags: Record<string, string> = {}): Promise<void> {
  await node.start(flags);
  plugin = await node.addPlugin("pressure");
}

function addReplicas(names: readonly string[], gracePeriodSeconds = 1): void {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web", controller: true };
  for (const name of names) {
    const spec = { terminationGracePeriodSeconds: gracePeriodSeconds };
    node.cluster.addPod(name, { metadata: { ownerReferences: [owner] }, spec });
  }
}

const heldReasons = () =>
  node.agent.logLines.filter(({ msg }) => msg === "eviction on hold").map(({ reason }) => reason);
const events = (reason: string) =>
  node.cluster.server.store
    .list("events")
    .filter((event) => event.reason === reason)
    .map((event) => event.message as string);

// What agentFlags turns off, as an operator has it who sets nothing.
const defaults = {
  evictionCooldown: "",
  evictionLimitsPerNode: "",
  evictionLimitsPerOwner: "",
  evictionGraceShortest: "",
};

describe("with the defaults, a threshold that never clears", () => {
  it("waits for the cooldown after each eviction, and that is logged and shown in the rounds", async () => {
    addReplicas(["web-1", "web-2", "web-3"]);
    await start(defaults);
    plugin.top = (offered, pods) => pick(offered.slice(0, 1))(offered, pods);
    plugin.threshold = { ...hardPressure };
    await until("the cooldown", () => heldReasons().includes("cooldown"), {
      explain: () => node.agent.logLines,
    });
    await untilNextRounds(plugin);
    expect(node.cluster.evictions()).toHaveLength(1);
    await until("the rounds show it", async () =>
      JSON.stringify(await node.agent.api("eviction/rounds")).includes("cooldown after the last eviction"),
    );
    await until("the metric", async () =>
      /held_rounds_total\{reason="cooldown"\} [1-9]/.test(await node.agent.metrics()),
    );
  });

  it("takes two pods of an owner and ten of the node, and explains what holds the others back", async () => {
    const singles = Array.from({ length: 10 }, (_, at) => `single-${at}`);
    addReplicas(["a-web-1", "a-web-2", "a-web-3"]);
    for (const name of singles) node.cluster.addPod(name);
    // The limits alone: a cooldown of half a minute would take the test minutes.
    await start({ ...defaults, evictionCooldown: "0s" });
    plugin.evictPods = (offered, pods) => ({
      evictPods: offered.map((_name, at) => ({
        pod: pods[at]!,
        reason: "all",
        forceEvict: true,
        deletionOptions: { gracePeriodSeconds: 1n },
      })),
    });
    await until("ten evictions", () => node.cluster.evictions().length >= 10, {
      explain: () => node.agent.logLines,
    });
    await untilNextRounds(plugin);
    expect(node.cluster.evictions().toSorted()).toEqual(
      ["a-web-1", "a-web-2", ...singles.slice(0, 8)].toSorted(),
    );
    // The second that the plugin gives them is raised, and that is recorded.
    const { body } = node.cluster.requests.find(({ path, body }) => path.endsWith("/eviction") && body)!;
    expect(body).toHaveProperty("deleteOptions.gracePeriodSeconds", 10);
    const evicted = JSON.stringify(await node.agent.api("eviction/explain?pod=default/a-web-1"));
    expect(evicted).toContain("requested grace period 1 s raised to the minimum of 10 s");
    const page = JSON.stringify(await node.agent.api("eviction/explain?pod=default/a-web-3"));
    expect(page).toContain('"ownerLimit"');
    expect(JSON.stringify(await node.agent.api("eviction/explain?pod=default/single-9"))).toContain(
      '"nodeLimit"',
    );
  });
});

it("an eviction that was sent counts until its window has passed, though its pod hangs; its Event reports it", async () => {
  await node.cluster.stop();
  node.cluster = await startCluster({ removePodsAfterGrace: false });
  addReplicas(["web-1", "web-2"]);
  node.cluster.addPod("other");
  await start({ evictionLimitsPerOwner: "1", evictionReleaseMargin: "1s" });
  // The lowest-ranked by name would be "other": the replicas are named first.
  plugin.top = (offered, pods) =>
    pick(["web-1", "web-2", "other"].filter((name) => offered.includes(name)).slice(0, 1))(offered, pods);
  plugin.threshold = { ...hardPressure };
  await until("web-1 is overdue", () => events("EvictionOverdue").length > 0, {
    explain: () => node.agent.logLines,
  });
  expect(events("EvictionOverdue")[0]).toMatch(/^Evicted by pressure, but the pod is still terminating/);
  expect(events("EvictionFailed")).toEqual([]);
  // Its slot with the owner is not freed: another pod is evicted, and then none.
  await until("the other pod is evicted", () => node.cluster.evictions().includes("other"));
  await untilNextRounds(plugin);
  expect(node.cluster.evictions()).toEqual(["web-1", "other"]);
});

it("a pod that two plugins' pressures selected relieves both: neither takes another while it is terminating", async () => {
  const spec = { terminationGracePeriodSeconds: 3_600 };
  node.cluster.addPod("other", { spec });
  await start({ evictionLongestRelease: "1h" });
  const second = await startEvictionPlugin(node.agent.pluginDir, "second-pressure");
  try {
    // One round offers both plugins the same pods, so that both select "shared" in the round that first has it.
    let hasShared = false;
    for (const one of [plugin, second]) {
      one.top = (offered, pods) => {
        hasShared ||= offered.includes("shared");
        return hasShared ? pick(offered.includes("shared") ? ["shared"] : offered)(offered, pods) : {};
      };
    }
    plugin.threshold = { ...hardPressure };
    second.threshold = { ...hardPressure, evictionScope: "disk" };
    await until("both are asked", () => plugin.topRequests.length > 0 && second.topRequests.length > 0, {
      explain: () => node.agent.logLines,
    });
    node.cluster.addPod("shared", { spec });
    await until("the pod is evicted", () => node.cluster.evictions().length > 0);
    await untilNextRounds(second);
    const held = node.agent.logLines.filter(({ msg }) => msg === "eviction on hold");
    expect(held.map((line) => [line.plugin, line.reason]).toSorted()).toEqual([
      ["pressure", "pendingRelease"],
      ["second-pressure", "pendingRelease"],
    ]);
    expect(node.cluster.evictions()).toEqual(["shared"]);
  } finally {
    await second.stop();
  }
});

describe("a step of the wall clock", () => {
  it("of an hour forward neither confirms a grace period, nor ends a limit, nor releases a pressure", async () => {
    addReplicas(["web-1", "web-2"], 600);
    await start({ evictionLimitsPerOwner: "1" });
    plugin.threshold = { ...hardPressure, gracePeriodSeconds: 600n };
    await until("the threshold is met", async () =>
      JSON.stringify(await node.agent.api("eviction/rounds")).includes("within its grace period"),
    );
    node.clock.step(HOUR_MS);
    plugin.top = pick(["web-1"]);
    await untilNextRounds(plugin);
    expect(plugin.topRequests).toEqual([]);
    expect(node.cluster.evictions()).toEqual([]);

    // Without a grace period web-1 is evicted, and the next hour frees neither the pressure nor the owner's limit.
    plugin.threshold = { ...hardPressure };
    await until("web-1 is evicted", () => node.cluster.evictions().length > 0, {
      explain: () => node.agent.logLines,
    });
    plugin.top = pick(["web-2"]);
    node.clock.step(HOUR_MS);
    await untilNextRounds(plugin);
    node.clock.step(-2 * HOUR_MS);
    await untilNextRounds(plugin);
    expect(node.cluster.evictions()).toEqual(["web-1"]);
    expect(heldReasons()).toEqual(["pendingRelease"]);
  });
});
