import { ConditionType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "../support/eviction-plugin.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { rightOf } from "./support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";

const missing = missingParts(...controlPlaneParts);
const NODE = "worker-1";
const nodePath = `/api/v1/nodes/${NODE}`;
const pods = "/api/v1/namespaces/default/pods";
const ofKatalyst = { key: "node.katalyst.kubewharf.io/MemoryPressure", effect: "NoSchedule" };

describe.skipIf(missing)("dry run on a real API server, with rights to evict and to taint", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  let plugin: TestEvictionPlugin;

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    await cluster.admin.patch(nodePath, { spec: { taints: [ofKatalyst] } });
    await cluster.admin.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web" },
      spec: { nodeName: NODE, containers: [{ name: "app", image: "app" }] },
    });
    await cluster.admin.patch(`${pods}/web/status`, { status: { phase: "Running" } });
    // The rights of deploy/rbac.yaml, which include evictions.
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: {
        lifecycle: "false",
        "reporting-in-tree-plugins": "-system-reporter-plugin",
        "eviction-dry-run-plugins": "*",
        "eviction-taint-prefix": "node.katalyst.kubewharf.io",
        "eviction-sync-period": "1s",
        "eviction-condition-transition-period": "2s",
      },
    });
    await agent.ready();
    plugin = await startEvictionPlugin(agent.pluginDirectory, "pressure");
    await until("registration", () => plugin.registered === true);
  });

  afterAll(async () => {
    await plugin?.stop();
    await agent?.child.stop();
    await cluster?.stop();
  });

  it("writes nothing about eviction and leaves katalyst's taints, for longer than removals wait after a start", async () => {
    const condition = {
      ...{ conditionType: ConditionType.NODE_CONDITION, conditionName: "DiskPressure" },
      ...{ effects: ["NoSchedule"], metCondition: true },
    };
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure, condition };
    await eventually(async () =>
      expect(await agent.command("rounds", "-o", "json")).toMatch(/"dryRunVictims":\[\{[^\]]*web/),
    );
    // Longer than a minute, after which an agent without a stored state removes taints.
    const { rounds } = plugin;
    for (let more = 10; more <= 70; more += 10)
      await until(`${more} rounds of a second`, () => plugin.rounds >= rounds + more);
    plugin.threshold = {};
    const cleared = plugin.rounds;
    await until("rounds after the threshold cleared", () => plugin.rounds >= cleared + 5);

    const live = await cluster.admin.get(nodePath);
    expect(live.spec.taints).toContainEqual(expect.objectContaining(ofKatalyst));
    expect(live.metadata.annotations ?? {}).not.toHaveProperty("nodekeeper.dev/own-taints");
    expect(live.status.conditions ?? []).not.toContainEqual(
      expect.objectContaining({ type: "EvictionBlocked" }),
    );
    expect((await cluster.admin.get(`${pods}/web`)).metadata.deletionTimestamp).toBeUndefined();
    const writes = cluster.audit
      .requests({ user: agent.user })
      .filter(({ verb }) => !["get", "list", "watch"].includes(verb))
      .map(rightOf)
      .filter((right) => /nodes|pods|events/.test(right) && !right.includes("customnoderesources"));
    expect(writes).toEqual([]);
  });
});
