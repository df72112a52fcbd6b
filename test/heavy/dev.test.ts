import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { release, tmpdir } from "node:os";
import { join } from "node:path";
import { type ContainerStatus, PodLifecycleClient } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { statusReader } from "../support/agent.ts";
import { isAlive, type ScriptProcess, startInGroup, startScript } from "../support/processes.ts";
import { isFull } from "../support/sizes.ts";

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

// biome-ignore lint/suspicious/noExplicitAny: objects of any shape
function podAsPublished(metadata: any, spec: any, status: any) {
  const { namespace, name, uid } = metadata;
  // biome-ignore lint/suspicious/noExplicitAny: objects of any shape
  const containers = status.containerStatuses.map((each: any) => {
    const state = each.state.running ? "running" : "exited";
    return `${each.name} ${state} ${each.restartCount}`;
  });
  return { namespace, name, uid, node: spec.nodeName, containers };
}

function newestOfEachName(containers: readonly ContainerStatus[]): ContainerStatus[] {
  const newest = new Map<string, ContainerStatus>();
  for (const container of [...containers].sort((a, b) => a.attempt - b.attempt))
    newest.set(container.name, container);
  return [...newest.values()];
}

/** Sends the signal, and expects an end with status 0 that leaves nothing behind. */
async function expectEnd(name: "SIGINT" | "SIGTERM", plugin: number): Promise<void> {
  expect(readdirSync(scratch)).toHaveLength(1);
  dev.kill(name);
  expect(await dev.ended, dev.output()).toBe(0);
  // Its stdin has closed at the latest now; on a busy machine it ends a moment later.
  await until("the plugin has ended", () => !isAlive(plugin));
  expect(dev.output()).toMatch(/Stopped\.\n$/);
  expect(readdirSync(scratch)).toEqual([]);
}

describe("nodekeeper dev", () => {
  it.runIf(isFull)("SIGTERM ends it with status 0, nothing left behind", async () => {
    startDev();
    await expectEnd("SIGTERM", await untilWorking());
  });

  it("API server and runtime have the same pods, Node and CustomNodeResource the same machine; SIGINT ends it", async () => {
    startDev();
    const plugin = await untilWorking();
    const url = printed(/API server +(http:\S+)/);
    // biome-ignore lint/suspicious/noExplicitAny: documents of any shape
    const get = async (path: string): Promise<any> => (await fetch(url + path)).json();
    const directory = readdirSync(scratch).find((each) => each.startsWith("nodekeeper-"))!;
    using client = new PodLifecycleClient({ socket: join(scratch, directory, "nodekeeper.sock") });
    // The container that fails is between two states now and then.
    await eventually(async () => {
      const { items } = await get("/api/v1/pods");
      const published = items.map(({ metadata, spec, status }: never) =>
        podAsPublished(metadata, spec, status),
      );
      const known = (await client.getPods()).map(({ namespace, name, uid, containers }) => ({
        namespace,
        name,
        uid,
        node: "dev-node",
        containers: newestOfEachName(containers).map(
          ({ name, state, attempt }) => `${name} ${state} ${attempt}`,
        ),
      }));
      const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
      expect(known.sort(byName)).toEqual(published.sort(byName));
      expect(known.map(({ name }) => name.split("-")[0])).toEqual([
        "cluster",
        "crawler",
        "importer",
        "inference",
        "ledger",
        "log",
        "search",
        "thumbnailer",
        "training",
      ]);
    });
    const { status, metadata } = await get("/api/v1/nodes/dev-node");
    // biome-ignore lint/suspicious/noExplicitAny: documents of any shape
    const properties = new Map<string, any>();
    await eventually(async () => {
      const { spec } = await get("/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources/dev-node");
      for (const each of spec.nodeResourceProperties) properties.set(each.propertyName, each);
      expect([...properties.keys()]).toEqual(expect.arrayContaining(["cpu", "memory", "topology"]));
    });
    const property = (name: string) => properties.get(name);
    expect(status.capacity).toMatchObject({
      cpu: property("cpu").propertyQuantity,
      memory: property("memory").propertyQuantity,
    });
    expect(status.allocatable).toMatchObject({ cpu: status.capacity.cpu, memory: status.capacity.memory });
    expect(status.nodeInfo).toMatchObject({ kernelVersion: release(), operatingSystem: "linux" });
    expect(metadata.labels["kubernetes.io/arch"]).toBe(status.nodeInfo.architecture);
    const { address } = status.addresses.find(({ type }: { type: string }) => type === "InternalIP");
    expect(address === "127.0.0.1" || JSON.stringify(property("topology")).includes(address)).toBe(true);
    client.close();
    await expectEnd("SIGINT", plugin);
  });

  it("sample pods hold devices of the sample driver, which are zones of the node's topology", async () => {
    startDev();
    await untilWorking();
    const agent = statusReader(printed(/agent +http:\/\/(\S+?)\/? /)!);
    const [driver] = await until("the claims are prepared", async () => {
      const found: { claims: { state: string; pods?: string[]; devices: string[] }[] }[] =
        await agent.api("claims");
      return found[0]?.claims.length === 2 && found[0].claims.every(({ state }) => state === "prepared")
        ? found
        : undefined;
    });
    const held = driver!.claims.flatMap(({ devices, pods }) => devices.map((device) => [device, ...pods!]));
    expect(held).toHaveLength(3);
    const object = encodeURIComponent("node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource");
    await until("the devices have their zones", async () => {
      const { content } = await agent.api(`objects/content?object=${object}`);
      const zones = JSON.stringify(content.status?.topologyZone ?? []);
      return held.every(([device, pod]) => zones.includes(`/${device}"`) && zones.includes(`"${pod}/`));
    });
  });

  it("a sample pod is evicted, its containers end on the node, and it has a successor", async () => {
    startDev("--first-pressure", "1s");
    const url = await until("the API server", () => printed(/API server +(http:\S+)/));
    await until("what switches eviction on", () =>
      printed(/^ {2}eviction +(live, set by --eviction-dry-run-plugins=)/m),
    );
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
    const directory = readdirSync(scratch).find((each) => each.startsWith("nodekeeper-"))!;
    const client = new PodLifecycleClient({ socket: join(scratch, directory, "nodekeeper.sock") });
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

it.runIf(isFull)("npm start prints the page's address first; Ctrl-C ends all of it", async () => {
  dev = startInGroup("npm", ["start"], { TMPDIR: scratch });
  // npm itself may name what it runs, in lines that begin with ">".
  const [, address] = await until("the first line", () => /^(?:\s|>.*\n)*([^\s>].*)\n/.exec(dev.stdout()), {
    explain: dev.output,
  });
  const [, page] = /^Page: (http:\/\/127\.0\.0\.1:\d+\/)$/.exec(address!) ?? [];
  expect(page, dev.stdout()).toBeDefined();
  const loaded = await fetch(page!, { headers: { accept: "text/html,*/*;q=0.8" } });
  expect([loaded.status, loaded.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const files = [...(await loaded.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file!);
  expect(files.some((file) => file.endsWith(".js"))).toBe(true);
  for (const file of files) expect((await fetch(new URL(file, page))).status, file).toBe(200);
  dev.kill("SIGINT");
  await dev.ended;
  expect(dev.output()).toMatch(/Stopped\.\n/);
  await until("no process of it is left", () => !isAlive(-dev.pid));
  expect(readdirSync(scratch)).toEqual([]);
});
