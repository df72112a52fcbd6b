import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PodLifecycleClient } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { statusReader } from "../support/agent.ts";
import { isAlive, type ScriptProcess, startScript } from "../support/processes.ts";
import { isFull, sized } from "../support/sizes.ts";

let scratch: string;
let dev: ScriptProcess;

beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "nk-dev-"));
});
afterEach(async () => {
  dev.kill("SIGKILL");
  await dev.ended;
  rmSync(scratch, { recursive: true, force: true });
});

function startDev(...args: string[]): void {
  dev = startScript("packages/agent/src/main.ts", ["dev", ...args], { TMPDIR: scratch });
}

const printed = (pattern: RegExp) => pattern.exec(dev.output())?.[1];

/** Waits until the sample plugin's content is there; gives the plugin's process. */
async function untilWorking(): Promise<number> {
  const pid = await until("the sample plugin", () => printed(/reporter plugin +process (\d+)/), {
    explain: dev.output,
  });
  const address = await until("the agent", () => printed(/agent +http:\/\/(\S+)/));
  const agent = statusReader(address);
  await until("the sample's content is published", async () => {
    const objects: { plugins: string[]; pending: boolean; writes: number }[] = await agent.api("objects");
    const mine = objects.filter(({ plugins }) => plugins.includes("example-reporter"));
    return mine.length === 2 && mine.every(({ pending, writes }) => !pending && writes > 0);
  });
  expect(isAlive(Number(pid))).toBe(true);
  return Number(pid);
}

describe("nodekeeper dev", () => {
  it.each(sized(["SIGINT"] as const, ["SIGINT", "SIGTERM"] as const))(
    "%s ends it with status 0, nothing left behind",
    async (name) => {
      startDev();
      const plugin = await untilWorking();
      expect(readdirSync(scratch)).toHaveLength(1);
      dev.kill(name);
      expect(await dev.ended, dev.output()).toBe(0);
      expect(isAlive(plugin)).toBe(false);
      expect(dev.output()).toMatch(/Stopped\.\n$/);
      expect(readdirSync(scratch)).toEqual([]);
    },
  );

  it("a sample pod is evicted, its containers end on the node, and it has a successor", async () => {
    startDev("--first-pressure", "1s");
    const url = await until("the API server", () => printed(/API server +(http:\S+)/));
    const objects = async (plural: string) => {
      const response = await fetch(`${url}/api/v1/${plural}`);
      // biome-ignore lint/suspicious/noExplicitAny: objects of any shape
      return ((await response.json()) as { items: any[] }).items;
    };
    const event = await until(
      "an eviction",
      async () => (await objects("events")).find(({ reason }) => reason === "Evicted"),
      { explain: dev.output },
    );
    expect(event.message).toMatch(/^Evicted by example-eviction: sample-memory \d+ > threshold/);
    const { uid, name, namespace } = event.involvedObject;
    const folder = readdirSync(scratch).find((each) => each.startsWith("nodekeeper-"))!;
    const client = new PodLifecycleClient({ socket: join(scratch, folder, "nodekeeper.sock") });
    try {
      const deaths: string[] = [];
      for await (const item of client.watch({ since: 0, selector: { uid } }, new AbortController().signal)) {
        if (item.kind === "event" && item.event.type === "ContainerDied") {
          deaths.push(`${item.event.container?.name} ${item.event.exitCode}`);
          break;
        }
      }
      expect(deaths).toEqual(["main 143"]);
    } finally {
      client.close();
    }
    await until("the API server forgets it", async () => {
      const pods = await objects("pods");
      return pods.every(({ metadata }) => metadata.uid !== uid);
    });
    const [workload] = name.split("-");
    const sample = (await objects("pods")).filter(({ metadata }) => metadata.labels.app === workload);
    expect(sample).toMatchObject([{ metadata: { namespace }, status: { phase: "Running" } }]);
  });

  it.runIf(isFull)("SIGINT while it starts ends it just so", async () => {
    startDev();
    await until("it has begun", () => readdirSync(scratch).length > 0);
    dev.kill("SIGINT");
    expect(await dev.ended, dev.output()).toBe(0);
    expect(readdirSync(scratch)).toEqual([]);
  });

  it.runIf(isFull)("SIGKILL leaves no process behind", async () => {
    startDev();
    const plugin = await untilWorking();
    dev.kill("SIGKILL");
    await dev.ended;
    await until("the sample plugin ends by itself", () => !isAlive(plugin));
  });

  it.runIf(isFull)(
    "with --data-dir the objects and the state are there again at the next start",
    async () => {
      const kept = join(scratch, "kept");
      startDev("--data-dir", kept);
      await untilWorking();
      dev.kill("SIGINT");
      expect(await dev.ended).toBe(0);
      startDev("--data-dir", kept, "--no-plugin");
      const url = await until("the API server", () => printed(/API server +(http:\S+)/));
      const path = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/dev-node";
      // biome-ignore lint/suspicious/noExplicitAny: a document of any shape
      const cnr: any = await (await fetch(url + path)).json();
      expect(cnr.status.resources.capacity).toEqual({ "example.nodekeeper.dev/widgets": "16" });
      dev.kill("SIGINT");
      expect(await dev.ended).toBe(0);
    },
  );
});
