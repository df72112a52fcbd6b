import { setTimeout as sleep } from "node:timers/promises";
import { customNodeResource, metadata, node, status } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentProcess } from "./support/agent-process.ts";
import { tally } from "./support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";

const missing = missingParts(...controlPlaneParts);
const NODE = "worker-1";
const cnrPath = `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${NODE}`;
const nodePath = `/api/v1/nodes/${NODE}`;
const PLUGINS = 5;
const OUTAGE_MS = Number(process.env.E2E_OUTAGE_SECONDS ?? 60) * 1_000;
const SAY_EVERY_MS = 250;

describe.skipIf(missing)("an API server killed while plugins report", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  const plugins: SteeredPlugin[] = [];

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    agent = await AgentProcess.start(cluster, { nodeName: NODE });
    await agent.ready();
  });

  afterAll(async () => {
    await Promise.all(plugins.map((plugin) => plugin.stop()));
    await agent?.child.stop();
    await cluster?.stop();
  });

  async function published(): Promise<Record<string, string>> {
    const [{ status }, { metadata }] = await Promise.all([
      cluster.admin.get(cnrPath),
      cluster.admin.get(nodePath),
    ]);
    return { ...status?.resources?.capacity, ...metadata.labels };
  }

  it(`loses nothing and writes little on return after ${OUTAGE_MS / 1_000} s`, async () => {
    for (let each = 0; each < PLUGINS; each++) {
      plugins.push(new SteeredPlugin(agent, `plugin-${each}`, report(each, 0)));
    }
    await eventually(async () => expect(await published()).toMatchObject(expected(0)));

    await cluster.apiServer.kill();
    let said = 0;
    for (const endsAt = Date.now() + OUTAGE_MS; Date.now() < endsAt; await sleep(SAY_EVERY_MS)) {
      said++;
      for (const [each, plugin] of plugins.entries()) plugin.say(...report(each, said));
    }
    const returnedAt = Date.now();
    cluster.apiServer.start();
    await cluster.ready();
    const readyAt = Date.now();

    await eventually(async () => expect(await published()).toMatchObject(expected(said)));
    const caughtUpAt = Date.now();
    // Watches are back when a change by somebody else is seen.
    await cluster.admin.patch(`${cnrPath}/status`, {
      status: { resources: { capacity: { "example.com/d0": "9999" } } },
    });
    // A watch that was tried while the server came up waits its half minute once more.
    await eventually(async () => expect(await published()).toMatchObject(expected(said)));
    await agent.ready();
    await sleep(5_000);

    const requests = cluster.audit.requests({ user: agent.user, since: returnedAt });
    const counts = tally(requests);
    console.log(`last values ${caughtUpAt - readyAt} ms after ready; requests since`, counts);
    // One or two for each part of each object, and one repair: not one for each of the reports made meanwhile.
    const writes = requests.filter(({ verb }) => verb === "patch");
    expect(writes.length).toBeLessThanOrEqual(10);
    expect(requests.length).toBeLessThanOrEqual(40);
  });
});

function report(plugin: number, value: number) {
  return [
    customNodeResource(status("resources", { capacity: { [`example.com/d${plugin}`]: String(value + 1) } })),
    node(metadata("labels", { [`example.com/p${plugin}`]: String(value) })),
  ];
}

function expected(value: number): Record<string, string> {
  const pairs = Array.from({ length: PLUGINS }, (_, plugin) => [
    [`example.com/d${plugin}`, String(value + 1)],
    [`example.com/p${plugin}`, String(value)],
  ]);
  return Object.fromEntries(pairs.flat());
}
