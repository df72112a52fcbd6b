import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { agentFlags, statusReader } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import { argumentsOf, type ScriptProcess, startScript } from "./support/processes.ts";

const header = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";

let cluster: TestCluster;
let file: string;
/** Where the last good configuration is kept. */
let kept: string;
let agents: ScriptProcess[];

beforeEach(async () => {
  cluster = await startCluster();
  file = join(cluster.directory, "config.yaml");
  kept = join(cluster.directory, "state", "nodekeeper.config");
  agents = [];
});
afterEach(async () => {
  for (const agent of agents) agent.kill("SIGKILL");
  await Promise.all(agents.map(({ ended }) => ended));
  await cluster.stop();
});

function write(settings: string): void {
  writeFileSync(file, header + settings);
}

/** Starts a real agent whose synchronization period and cooldown are in the file. */
function run(more: Record<string, string> = {}): ScriptProcess {
  const { evictionSyncPeriod: _, evictionCooldown: __, ...flags } = agentFlags(cluster);
  const args = argumentsOf({ ...flags, kubeApiBurst: "200", ...more });
  const agent = startScript("packages/agent/src/main.ts", ["run", "--config", file, ...args]);
  agents.push(agent);
  return agent;
}

/** Waits until the agent listens, and returns how to read from it. */
async function statusOf(agent: ScriptProcess) {
  const [, address] = await until(
    "it listens",
    () =>
      /"address":"(\S+?)".*"msg":"status server is listening"|"msg":"status server is listening".*?"address":"(\S+?)"/
        .exec(agent.output())
        ?.filter(Boolean),
    { explain: agent.output },
  );
  return statusReader(address!);
}

async function stop(agent: ScriptProcess): Promise<void> {
  agent.kill("SIGKILL");
  await agent.ended;
}

/** Runs an agent with this file until it is ready, so that the file is the last good one. */
async function runWith(settings: string): Promise<void> {
  write(settings);
  const agent = run();
  const status = await statusOf(agent);
  await until("it is ready", async () => (await status.ready()).status === 200);
  expect(JSON.parse(readFileSync(kept, "utf8"))).toEqual({ file, text: header + settings });
  await stop(agent);
}

it("a start with a bad file runs with the last good one, is not ready, and says why; a good file is applied live", async () => {
  await runWith("eviction: {syncPeriod: 7s}\n");
  write("eviction: {syncPeriod: banana}\n");
  for (const start of ["first", "second"]) {
    const agent = run({ evictionCooldown: "9s" });
    const status = await statusOf(agent);
    const reason = `${file}:3:24: eviction.syncPeriod: got "banana", expected a duration from 1s to 5m`;
    const { status: code, text } = await until("the check has a reason", async () => {
      const ready = await status.ready();
      return ready.text.includes("[-]ConfigurationAccepted") && ready.text.includes(reason)
        ? ready
        : undefined;
    });
    expect(code).toBe(503);
    expect(text).toContain("The last good configuration is in force");
    // Everything else works, with the file's setting of before and the flag of now.
    const { eviction } = await status.api("configuration");
    expect([start, eviction.syncPeriod, eviction.cooldown]).toEqual([start, 7_000, 9_000]);
    const event = await until("an Event", () =>
      (cluster.server.store.list("events") as { reason?: string }[]).find(
        (each) => each.reason === "ConfigurationRefused",
      ),
    );
    expect(event).toMatchObject({ type: "Warning", message: expect.stringContaining(reason) });
    expect(event).toMatchObject({ involvedObject: { kind: "Node", name: NODE } });
    expect(JSON.parse(readFileSync(kept, "utf8")).text).toContain("7s");
    if (start === "first") {
      await stop(agent);
      continue;
    }
    write("eviction: {syncPeriod: 8s}\n");
    await until("it is ready", async () => (await status.ready()).status === 200);
    expect((await status.api("configuration")).eviction.syncPeriod).toBe(8_000);
    expect(JSON.parse(readFileSync(kept, "utf8")).text).toContain("8s");
  }
});
