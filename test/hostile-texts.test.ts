import { join } from "node:path";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, expect, it, vi } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { runCommand } from "../packages/agent/src/cli/testing/run-command.ts";
import { PodLifecycleEventGenerator } from "../packages/agent/src/lifecycle/index.ts";
import { MemoryRuntime } from "../packages/agent/src/lifecycle/testing/memory-runtime.ts";
import { servePlugin } from "../packages/agent/src/plugins/testing/setup.ts";
import { lifecycleRoutes } from "../packages/agent/src/server/index.ts";
import { serveRoutes } from "../packages/agent/src/server/testing/serve-routes.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { hardPressure, pick, startEvictionPlugin } from "./support/eviction-plugin.ts";

// Clears the screen, turns the text around, forges a row, rings.
const HOSTILE = "x\u001b[2J\u202egnp.exe\nforged   row\r\u009b31m\u0007\u200b";
// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not reach a terminal
const DANGEROUS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f]|^forged/m;

const ends: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const end of ends.splice(0).reverse()) await end();
});

/** Runs a command; what it printed, standard error included. */
async function cli(...args: string[]): Promise<string> {
  const { out, stderr } = await runCommand((output) => runCli(["node", "nodekeeper", ...args], output));
  return out + stderr;
}

/** The text shows, and does nothing. */
function expectHarmless(printed: string): void {
  expect(printed).toContain("gnp.exe");
  expect(printed).toMatch(/\\u001b\[2J\\u202e/);
  expect(printed).not.toMatch(DANGEROUS);
}

it("what plugins report of themselves and of pods is shown escaped by every command", async () => {
  const cluster: TestCluster = await startCluster();
  ends.push(() => cluster.stop());
  cluster.addPod("victim");
  const agent: RunningAgent = await startAgent(cluster);
  ends.push(() => agent.stop());
  const refused = await servePlugin(join(agent.pluginDir, "odd\u001b[2J\u202egnp.exe.sock"), {
    type: HOSTILE,
  });
  ends.push(() => refused.close());
  const plugin = await startEvictionPlugin(agent.pluginDir, "pressure");
  ends.push(() => plugin.stop());
  plugin.threshold = { ...hardPressure, evictionScope: HOSTILE };
  plugin.top = pick(["victim"]);
  await until("the pod is evicted", () => cluster.evictions().length > 0);
  await until("the other is refused", async () =>
    (await agent.plugins()).some(({ state }) => state === "refused"),
  );
  await until("it is recorded", async () =>
    (await cli("rounds", "--server", agent.address)).includes("victim"),
  );
  const commands = [
    ["plugins", "list"],
    ["plugins", "list", "-o", "wide"],
    ["plugins", "list", "-o", "json"],
    ["rounds"],
    ["rounds", "-o", "json"],
    ["rounds", "--records"],
    ["explain", "pod", "default/victim"],
    ["explain", "pod", "default/victim", "-o", "json"],
  ];
  for (const command of commands) expectHarmless(await cli(...command, "--server", agent.address));
  // What the caller typed, or pasted, comes back in errors.
  const typed = HOSTILE.replaceAll(/[\n\r]/g, "");
  expect(await cli("explain", "pod", typed, "--server", agent.address)).not.toMatch(DANGEROUS);
  expect(await cli("devices", typed, "--server", agent.address)).not.toMatch(DANGEROUS);
  expect(await cli("events", "--since", typed, "--server", "127.0.0.1:1")).not.toMatch(DANGEROUS);
});

it("what the container runtime reports is shown escaped by pods and events", async () => {
  const runtime = new MemoryRuntime();
  const common = { clock: systemClock, log: silentLogger };
  const lifecycle = new PodLifecycleEventGenerator({
    ...common,
    runtime,
    registry: new Registry(),
    settings: { relistPeriod: 20 },
  });
  const status = await serveRoutes(lifecycleRoutes(lifecycle, systemClock));
  ends.push(status.stop);
  const controller = new AbortController();
  const running = lifecycle.run(controller.signal);
  ends.push(() => running);
  ends.push(() => controller.abort(stopped("test is over")));
  runtime.addPod("a");
  runtime.pods.get("a")!.name = HOSTILE;
  runtime.set("a", "c", "running");
  await until("it is listed", async () =>
    (await cli("pods", "--server", status.address)).includes("gnp.exe"),
  );
  runtime.set("a", "c", "exited", "container", 3);
  await until("its exit is logged", async () =>
    (await cli("events", "--since", "1h", "--server", status.address)).includes("exit code 3"),
  );
  for (const command of ["pods", "events"]) {
    for (const format of [[], ["-o", "json"]]) {
      const since = command === "events" ? ["--since", "1h"] : [];
      expectHarmless(await cli(command, ...since, ...format, "--server", status.address));
    }
  }
});
