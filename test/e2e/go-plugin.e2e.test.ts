import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentProcess } from "./support/agent-process.ts";
import { Child } from "./support/child.ts";
import { type ControlPlane, kubeletCapacity, startControlPlane } from "./support/control-plane.ts";
import { controlPlaneParts, missingParts, pathOf } from "./support/parts.ts";

const missing = missingParts(...controlPlaneParts, "goReporter");
const NODE = "worker-1";
const NAME = "go-reporter";
const gpus = "example.com/gpus";

describe.skipIf(missing)("a Go plugin on katalyst-api's skeleton", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  let plugin: Child;
  let reportFile: string;

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: { "reporting-plugin-grace-period": "30s" },
    });
    await agent.ready();
    reportFile = join(cluster.directory, "report.json");
    say(8);
    plugin = new Child({
      name: NAME,
      command: pathOf("goReporter"),
      args: [`--name=${NAME}`, `--directory=${agent.pluginDirectory}`, `--file=${reportFile}`],
      logFile: join(cluster.directory, "go-reporter.log"),
    });
    plugin.start();
  });

  afterAll(async () => {
    await plugin?.stop();
    await agent?.child.stop();
    await cluster?.stop();
  });

  function say(count: number): void {
    const resources = { capacity: { [gpus]: String(count) } };
    writeFileSync(
      `${reportFile}.new`,
      JSON.stringify({ resources, labels: { "example.com/count": String(count) } }),
    );
    renameSync(`${reportFile}.new`, reportFile);
  }

  async function shows(count: number): Promise<void> {
    await eventually(async () => expect(await published()).toEqual([String(count), String(count)]));
  }

  async function published(): Promise<unknown[]> {
    const cnr = await cluster.admin.get(
      `/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/${NODE}`,
    );
    const node = await cluster.admin.get(`/api/v1/nodes/${NODE}`);
    expect(node.status.capacity).toEqual(kubeletCapacity);
    return [cnr.status?.resources?.capacity?.[gpus], node.metadata.labels["example.com/count"]];
  }

  it("registers and reports", async () => {
    await shows(8);
    expect(agent.logged()).toContainEqual(
      expect.objectContaining({ msg: "plugin registered", plugin: NAME }),
    );
  });

  it("streams its changes", async () => {
    say(7);
    await shows(7);
  });

  it("keeps its report, and continues, over the agent's restart", async () => {
    await agent.child.kill();
    say(6);
    agent.child.start();
    await agent.ready();
    await shows(6);
    say(5);
    await shows(5);
  });

  it("keeps its report when it is killed, and comes back", async () => {
    await plugin.kill();
    say(4);
    // The socket's file stays behind: the skeleton removes it as it starts.
    plugin.start();
    await shows(4);
  });

  it("deregisters as it ends, and its fields go after its grace", async () => {
    await plugin.stop();
    expect(existsSync(join(agent.pluginDirectory, `${NAME}.sock`))).toBe(false);
    await eventually(() =>
      expect(agent.logged().some(({ msg }) => String(msg).startsWith("reporter plugin disconnected"))).toBe(
        true,
      ),
    );
    expect(await published()).toEqual(["4", "4"]);
    await eventually(async () => expect(await published()).toEqual([undefined, undefined]));
  });
});
