import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { useNeighbour } from "../support/neighbour.ts";
import { aborted, startBarePlugin, widgets } from "../support/plugins.ts";
import { sized } from "../support/sizes.ts";

const node = useNeighbour();

/** The sum of a counter over all its labels but the plugin. */
async function metric(name: string, plugin: string): Promise<number> {
  const line = new RegExp(`^${name}\\{[^}]*plugin="${plugin}"[^}]*\\} (\\S+)$`, "gm");
  return [...(await node.agent.metrics()).matchAll(line)].reduce((sum, [, value]) => sum + Number(value), 0);
}

it("a plugin that sends 10,000 messages a second is throttled, and its last value arrives", async () => {
  let sent = 0;
  const flooding = new AbortController();
  const flood = await startBarePlugin(node.agent.pluginDir, "flood", {
    getReportContent: async () => ({ content: [widgets("flood", sent)] }),
    async *listAndWatchReportContent(_, { signal }) {
      const over = AbortSignal.any([flooding.signal, signal]);
      while (!over.aborted) {
        for (let n = 0; n < 100 && !over.aborted; n++) yield { content: [widgets("flood", ++sent)] };
        await sleep(10);
      }
      yield { content: [widgets("flood", sent)] };
      await aborted(signal);
    },
  });
  await until(
    "it is held back",
    async () => (await metric("nodekeeper_reporting_throttled_total", "flood")) >= sized(1, 3),
  );
  const writesBefore = node.cluster.writes("customnoderesources").length;
  const messagesBefore = await metric("nodekeeper_reporting_messages_total", "flood");
  const began = performance.now();
  await node.neighbour.update();
  await node.neighbour.update();
  await node.neighbour.update();
  await until(
    "another throttling",
    async () => (await metric("nodekeeper_reporting_throttled_total", "flood")) >= sized(2, 6),
  );
  const seconds = (performance.now() - began) / 1000;
  // Its share is 200 messages in 100 ms; the first of a window may come on top, and metrics are up to a second old.
  const messages = (await metric("nodekeeper_reporting_messages_total", "flood")) - messagesBefore;
  expect(messages).toBeLessThan(2_000 * (seconds + 1.5));
  // minWriteInterval is 50 ms.
  const writes = node.cluster.writes("customnoderesources").length - writesBefore;
  expect(writes).toBeLessThanOrEqual(20 * seconds + 2);
  flooding.abort();
  await until("its last value", () => node.cluster.widgets("flood") === String(sent), {
    explain: () => ({ sent, published: node.cluster.widgets("flood") }),
  });
  flood.stop();
});

it("a plugin that sends 64 MiB in a message is refused before it fills the memory", async () => {
  const script = join(import.meta.dirname, "..", "support", "huge-plugin.ts");
  const before = memory();
  const child = spawn(process.execPath, [script, node.agent.pluginDir, "huge", "64"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(child.stdout, "data");
    let most = 0;
    const watching = setInterval(() => {
      most = Math.max(most, memory());
    }, 5);
    const isNamed = async () =>
      /RESOURCE_EXHAUSTED|larger than max|exceeds/i.test((await node.agent.plugin("huge"))?.error ?? "");
    await until("it is named", isNamed, { explain: () => node.agent.plugin("huge") });
    await node.neighbour.update();
    const failures = () => metric("nodekeeper_reporting_call_failures_total", "huge");
    await until("more tries", async () => (await failures()) >= sized(2, 3), { explain: node.agent.metrics });
    await node.neighbour.update();
    clearInterval(watching);
    expect(await node.agent.plugin("huge")).toMatchObject({ contentBytes: 0 });
    expect(most - before).toBeLessThan(24 * 2 ** 20);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

// What lies outside V8's heap, where received bytes are.
function memory(): number {
  const { external, arrayBuffers } = process.memoryUsage();
  return Math.max(external, arrayBuffers);
}
