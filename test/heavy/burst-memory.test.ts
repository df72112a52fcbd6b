import { readFileSync, writeFileSync } from "node:fs";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { agentFlags } from "../support/agent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { type Neighbour, startNeighbour } from "../support/neighbour.ts";
import { aborted, rawField, startBarePlugin } from "../support/plugins.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";
import { sized } from "../support/sizes.ts";

const MB = 2 ** 20;
const REPORTS = sized(20, 50);
const REPORT_BYTES = 3.8 * MB;

let cluster: TestCluster;
let agent: ScriptProcess;
let neighbour: Neighbour;

beforeAll(async () => {
  cluster = await startCluster();
  const flags = agentFlags(cluster);
  agent = startScript("packages/agent/src/main.ts", ["run", ...argumentsOf(flags)]);
  neighbour = await startNeighbour(cluster, flags.pluginDirectories!);
});
afterAll(async () => {
  agent.kill("SIGTERM");
  await agent.ended;
  await neighbour.stop();
  await cluster.stop();
});

/** A figure of the agent's memory from /proc/[pid]/status (proc_pid_status(5)), MB. */
function memoryMb(name: "RssAnon" | "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${agent.pid}/status`, "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
}

/** From here on VmHWM is the most that the agent had since now: proc_pid_clear_refs(5). */
function forgetPeak(): void {
  writeFileSync(`/proc/${agent.pid}/clear_refs`, "5");
}

it("memory that a burst of large reports took is given back", async () => {
  // Heaps and stacks: memory that no file is behind.
  const before = memoryMb("RssAnon");
  const residentBefore = memoryMb("VmRSS");
  forgetPeak();
  const burst = Promise.withResolvers<void>();
  const plugin = await startBarePlugin(agentFlags(cluster).pluginDirectories!, "large", {
    getReportContent: async () => ({ content: [] }),
    async *listAndWatchReportContent(_, { signal }) {
      for (let report = 0; report < REPORTS && !signal.aborted; report++) {
        yield { content: [rawField("large", JSON.stringify({ report, text: "x".repeat(REPORT_BYTES) }))] };
      }
      burst.resolve();
      yield { content: [] };
      await aborted(signal);
    },
  });
  try {
    await burst.promise;
    await neighbour.update();
    const taken = memoryMb("VmHWM") - residentBefore;
    expect(taken).toBeGreaterThan(20);
    // The rest is what the first large report warms up: code, and the young generation at its full size. Without the trim
    // threshold more than half stays. Updates, since the garbage collector does not run in a process that does nothing.
    await eventually(async () => {
      await neighbour.update();
      expect(memoryMb("RssAnon") - before).toBeLessThan(0.4 * taken);
    });
  } finally {
    plugin.stop();
  }
});
