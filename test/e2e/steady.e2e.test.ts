import { setTimeout as sleep } from "node:timers/promises";
import { customNodeResource, metadata, node, status } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentProcess } from "./support/agent-process.ts";
import { tally } from "./support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";

const missing = missingParts(...controlPlaneParts);
const NODE = "worker-1";
const MOST_AT_START = 26;
const WINDOW_S = Number(process.env.E2E_STEADY_SECONDS ?? 120);

describe.skipIf(missing)("an agent for whom nothing changes", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  const plugins: SteeredPlugin[] = [];

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: { "eviction-in-tree-plugins": "*,rss-overuse-eviction-plugin" },
    });
    await agent.ready();
  });

  afterAll(async () => {
    await Promise.all(plugins.map((plugin) => plugin.stop()));
    await agent?.child.stop();
    await cluster?.stop();
  });

  it("asks the API server little at its start, and at most once a minute after that", async () => {
    const contents = [
      customNodeResource(status("resources", { capacity: { "example.com/gpus": "8" } })),
      node(
        metadata("labels", { "example.com/gpu-model": "g1" }),
        status("capacity", { "example.com/gpus": "8" }),
      ),
    ];
    plugins.push(new SteeredPlugin(agent, "quiet", contents));
    const path = `/api/v1/nodes/${NODE}`;
    await eventually(async () =>
      expect((await cluster.admin.get(path)).status.capacity["example.com/gpus"]).toBe("8"),
    );
    // A refused watch is retried after 5 s.
    await until("the requests of the start are over", () => {
      const last = cluster.audit.requests({ user: agent.user }).at(-1);
      return last !== undefined && Date.now() - Date.parse(last.requestReceivedTimestamp) > 15_000;
    });
    const since = Date.now();
    // docs/fleet.md multiplies these. There is no driver, but a report for the Node.
    const start = cluster.audit.requests({ user: agent.user });
    console.log("requests of the start", tally(start));
    const watches = start.filter(({ verb }) => verb === "watch");
    expect(watches.length, JSON.stringify(tally(watches))).toBeLessThanOrEqual(5);
    expect(start.length, JSON.stringify(tally(start))).toBeLessThanOrEqual(MOST_AT_START);
    // Without this, the figure below would be of no traffic.
    expect(start.length).toBeGreaterThan(5);
    for (const endsAt = since + WINDOW_S * 1_000; Date.now() < endsAt; await sleep(1_000)) {
      // The same again and again is no change.
      for (const plugin of plugins) plugin.say(...contents);
      // Neither is what a kubelet writes every ten seconds, about other fields.
      if (Math.round((endsAt - Date.now()) / 1_000) % 10 === 0) {
        const heartbeat = new Date().toISOString();
        const conditions = [{ type: "Ready", status: "True", lastHeartbeatTime: heartbeat }];
        await cluster.admin.patch(`${path}/status`, { status: { conditions } }, "kubelet");
      }
    }
    const requests = cluster.audit.requests({ user: agent.user, since });
    console.log(`requests in ${WINDOW_S} s`, tally(requests));
    expect(requests.length, JSON.stringify(tally(requests))).toBeLessThanOrEqual(WINDOW_S / 60);
  });
});
