import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { type ClaimToUnprepare, type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { DraKubelet, SimulatedCri, SimulatedRuntime, SteppedClock } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";

const DRIVER = "accelerators.example.com";
const CLAIMS = "resourceclaims.resource.k8s.io";

let cluster: TestCluster;
let agent: RunningAgent;
let kubelet: DraKubelet;
let runtime: SimulatedRuntime;
let cri: SimulatedCri;
let driver: Plugin;
let clock: SteppedClock;
/** "prepare first", "unprepare first", with the state that the runtime had the old pod's container in. */
let calls: string[];
/** Holds the driver's prepare. */
let whilePreparing: () => Promise<void>;
// Short, for the sockets of plugins.
let directory: string;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nkcu-"));
  calls = [];
  whilePreparing = async () => {};
  clock = new SteppedClock();
  cluster = await startCluster();
  runtime = new SimulatedRuntime({ clock });
  cri = new SimulatedCri({ runtime, socket: join(directory, "cri.sock"), clock });
  await cri.start();
  agent = await start();
  kubelet = new DraKubelet(join(directory, "reg"));
  driver = serve();
  await kubelet.untilRegistered(DRIVER);
});

afterEach(async () => {
  kubelet[Symbol.dispose]();
  await agent.stop();
  await driver.stop();
  await cri.stop();
  await cluster.stop();
  rmSync(directory, { recursive: true, force: true });
});

function start(flags: Record<string, string> = {}): Promise<RunningAgent> {
  const all = {
    lifecycle: "true",
    runtimeEndpoint: cri.socket,
    devicesKubeletPluginEnabled: "true",
    devicesKubeletPluginRegistryDirectory: join(directory, "reg"),
    devicesKubeletPluginCdiDirectory: join(directory, "cdi"),
    devicesMinWriteInterval: "0s",
    ...flags,
  };
  return startAgent(cluster, all, undefined, clock);
}

function serve(): Plugin {
  const running = () =>
    [...runtime.containers.values()]
      .filter(({ state }) => state === ContainerState.CONTAINER_RUNNING)
      .map(({ pod }) => pod.name)
      .join() || "nothing";
  return serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "device-0" }, { name: "device-1" }] }];
    },
    async prepare({ name, devices }) {
      calls.push(`prepare ${name} while ${running()} runs`);
      await whilePreparing();
      return devices.map(({ request, pool, device, shareId }) => ({
        request,
        pool,
        device,
        ...(shareId ? { shareId } : {}),
        edits: { env: { DEVICE: device } },
      }));
    },
    unprepare: ({ name }: ClaimToUnprepare) => void calls.push(`unprepare ${name} while ${running()} runs`),
  });
}

/** Stores a claim that is allocated a device and reserved for the pod "pod-of-<name>"; gives it as the kubelet names it. */
function claim(name: string, more: object = {}, device = "device-0") {
  const results = [{ request: "req", driver: DRIVER, pool: NODE, device, ...more }];
  const stored = cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default" },
    spec: {},
    status: {
      allocation: { devices: { results, config: [] } },
      reservedFor: [{ resource: "pods", name: `pod-of-${name}`, uid: `uid-of-pod-of-${name}` }],
    },
  });
  return { namespace: "default", name, uid: stored.metadata.uid! };
}

type Claim = ReturnType<typeof claim>;

/** Starts a container of the claim's pod; gives its ID. */
function run(name: string): string {
  const pod = { uid: `uid-of-pod-of-${name}`, name: `pod-of-${name}`, namespace: "default" };
  return runtime.runContainer(runtime.runSandbox(pod), { name: "main" });
}

const prepare = async (wanted: Claim) => (await kubelet.prepare(DRIVER, wanted))[wanted.uid]!.error;
const unprepare = async (wanted: Claim) => (await kubelet.unprepare(DRIVER, wanted))[wanted.uid]!.error;

/** A claim whose pod was deleted by force: the API server has neither, and the container runs. */
async function deletedByForce(name: string): Promise<{ wanted: Claim; container: string }> {
  const wanted = claim(name);
  expect(await prepare(wanted)).toBe("");
  const container = run(name);
  cluster.server.store.delete(CLAIMS, name, "default");
  return { wanted, container };
}

/** The agent has listed the containers of one pod twice more: unlike its relists, for a claim. */
async function untilReadAgain(): Promise<void> {
  let reads = 0;
  cri.faults = ({ method, podUid }) => {
    if (method === "ListContainers" && podUid !== undefined) reads++;
    return undefined;
  };
  await until("the runtime is read", () => reads >= 2);
}

const HELD = `container main of pod default/pod-of-first uses ${NODE}/device-0 and has not exited: its state in the container runtime is running`;
const BEFORE = "a device is not unprepared yet for ResourceClaim default/first, which had it before: ";

describe("a pod that was deleted by force, whose container still runs", () => {
  it("has its device until the container has ended: the next pod waits for that", async () => {
    const { container } = await deletedByForce("first");
    const next = prepare(claim("second"));
    await untilReadAgain();
    expect(calls).toEqual(["prepare first while nothing runs"]);
    runtime.exit(container, 137);
    expect(await next).toBe("");
    expect(calls.slice(1)).toEqual([
      "unprepare first while nothing runs",
      "prepare second while nothing runs",
    ]);
  });

  it("fails the next pod after a while, with a message that names the container; the kubelet asks again", async () => {
    const { container } = await deletedByForce("first");
    const second = claim("second");
    // Again where the clock was moved on too far during a call to the runtime.
    await eventually(async () => {
      let error: string | undefined;
      void prepare(second).then((message) => {
        error = message;
      });
      await until("refused", () => {
        clock.advance(1_000);
        return error !== undefined;
      });
      expect(error).toBe(`NK1514: ${BEFORE}${HELD}`);
    });
    // nodekeeper devices shows it as well.
    await eventually(async () =>
      expect(await agent.api("claims")).toMatchObject([
        { problem: HELD, claims: [{ state: "unpreparing" }] },
      ]),
    );
    runtime.exit(container, 137);
    expect(await prepare(second)).toBe("");
  });

  it("holds up the kubelet's unprepare, too, and the driver's", async () => {
    const { wanted, container } = await deletedByForce("first");
    const ending = unprepare(wanted);
    await untilReadAgain();
    expect(calls).toHaveLength(1);
    runtime.exit(container, 137);
    expect(await ending).toBe("");
    expect(calls.slice(1)).toEqual(["unprepare first while nothing runs"]);
  });

  it("keeps its device over a restart of the agent", async () => {
    const { container } = await deletedByForce("first");
    await agent.stop();
    agent = await start();
    await until("connected", async () => (await agent.api("claims"))[0]?.isPreparing === true);
    const next = prepare(claim("second"));
    await untilReadAgain();
    expect(calls).toHaveLength(1);
    runtime.exit(container, 137);
    expect(await next).toBe("");
  });

  it("keeps its device also if it came to a claim that another pod had prepared before", async () => {
    const shared = claim("shared");
    expect(await prepare(shared)).toBe("");
    const first = run("shared");
    const stored = cluster.server.store.get(CLAIMS, "shared", "default")!;
    const status = stored.status as { reservedFor: object[] };
    const late = { resource: "pods", name: "pod-of-late", uid: "uid-of-pod-of-late" };
    cluster.server.store.put({
      ...stored,
      status: { ...status, reservedFor: [...status.reservedFor, late] },
    });
    const second = run("late");
    await eventually(async () =>
      expect(await agent.api("claims")).toMatchObject([
        { claims: [{ pods: ["default/pod-of-shared", "default/pod-of-late"] }] },
      ]),
    );
    runtime.exit(first, 0);
    cluster.server.store.delete(CLAIMS, "shared", "default");
    const next = prepare(claim("second"));
    await untilReadAgain();
    expect(calls).toHaveLength(1);
    runtime.exit(second, 137);
    expect(await next).toBe("");
  });

  it("keeps its device while the runtime can't be read: the message has why", async () => {
    const { container } = await deletedByForce("first");
    runtime.exit(container, 137);
    await cri.stop();
    const second = claim("second");
    const next = prepare(second);
    // The claim has been read, and the runtime has not.
    await until("it waits", async () => (await agent.api("claims"))[0]?.claims[0]?.state === "unpreparing");
    clock.advance(35_000);
    expect(await next).toContain(
      `NK1514: ${BEFORE}it is unknown whether containers of pod default/pod-of-first still use ${NODE}/device-0: `,
    );
    expect(calls).toHaveLength(1);
    await cri.start();
    await eventually(async () => expect(await prepare(second)).toBe(""));
  });

  it("without lifecycle keeps its device until the kubelet has unprepared it", async () => {
    const { wanted } = await deletedByForce("first");
    await agent.stop();
    agent = await start({ lifecycle: "false" });
    await until("connected", async () => (await agent.api("claims"))[0]?.isPreparing === true);
    const second = claim("second");
    expect(await prepare(second)).toContain("lifecycle.enabled is false");
    expect(await unprepare(wanted)).toBe("");
    expect(await prepare(second)).toBe("");
    expect(agent.logLines).toContainEqual(expect.objectContaining({ errorId: "NK1514", level: "warn" }));
  });
});

describe("two claims that exist and have one device", () => {
  it("the second one is refused, with a message that names the first", async () => {
    expect(await prepare(claim("first"))).toBe("");
    const second = claim("second");
    expect(await prepare(second)).toBe(
      `NK1515: device ${NODE}/device-0 is prepared for ResourceClaim default/first, which is allocated it as well: a device is prepared for one claim at a time`,
    );
    expect(calls).toHaveLength(1);
  });

  it("one of two at once is refused", async () => {
    const errors = await Promise.all([prepare(claim("first")), prepare(claim("second"))]);
    expect(errors.filter((error) => error === "")).toHaveLength(1);
    expect(errors.join()).toContain("NK1515");
    expect(calls).toHaveLength(1);
  });

  it.each([
    ["with adminAccess, the first", { adminAccess: true }, {}],
    ["with adminAccess, the second", {}, { adminAccess: true }],
    ["shares", { shareID: "one" }, { shareID: "two" }],
  ])("both are prepared: %s", async (_, ofFirst, ofSecond) => {
    expect(await prepare(claim("first", ofFirst))).toBe("");
    run("first");
    expect(await prepare(claim("second", ofSecond))).toBe("");
    expect(calls).toHaveLength(2);
  });
});

describe("a prepare whose call has ended", () => {
  it("does not prepare: cancelled by the kubelet while it waited for the device", async () => {
    const { container } = await deletedByForce("first");
    const ending = new AbortController();
    const next = kubelet.prepareUntil(ending.signal, DRIVER, claim("second"));
    await untilReadAgain();
    ending.abort();
    await expect(next).rejects.toThrow();
    await eventually(async () =>
      expect(await agent.metrics()).toContain('operation="prepare",result="stopped"} 1'),
    );
    runtime.exit(container, 137);
    expect(await prepare(claim("third"))).toBe("");
    expect(calls.filter((call) => call.includes("second"))).toEqual([]);
  });

  it("does not prepare: overtaken by the kubelet's unprepare", async () => {
    const { container } = await deletedByForce("first");
    const second = claim("second");
    const next = prepare(second);
    await untilReadAgain();
    expect(await unprepare(second)).toBe("");
    expect(await next).toContain(
      "the kubelet has called to unprepare the claim after it called to prepare it",
    );
    runtime.exit(container, 137);
    expect(await prepare(claim("third"))).toBe("");
    expect(calls.filter((call) => call.startsWith("prepare second"))).toEqual([]);
  });

  it("does not prepare: overtaken while it waited for a disconnected driver", async () => {
    await driver.stop();
    await until("disconnected", async () => (await agent.api("claims"))[0]?.isPreparing === false);
    const first = claim("first");
    const next = prepare(first);
    await until("it waits", () => agent.logLines.some(({ msg }) => msg === "claim waits for its driver"));
    expect(await unprepare(first)).toBe("");
    expect(await next).toContain(
      "the kubelet has called to unprepare the claim after it called to prepare it",
    );
    driver = serve();
    await eventually(() => expect(calls).toEqual(["unprepare first while nothing runs"]));
    expect(await prepare(claim("second"))).toBe("");
    expect(calls).toHaveLength(2);
  });

  it("is completed by a driver that was called already, and then unprepared", async () => {
    const held = Promise.withResolvers<void>();
    whilePreparing = () => held.promise;
    const first = claim("first");
    const ending = new AbortController();
    const preparing = kubelet.prepareUntil(ending.signal, DRIVER, first);
    await until("the driver prepares", () => calls.length === 1);
    ending.abort();
    await expect(preparing).rejects.toThrow();
    const unpreparing = unprepare(first);
    held.resolve();
    expect(await unpreparing).toBe("");
    expect(calls).toEqual(["prepare first while nothing runs", "unprepare first while nothing runs"]);
  });
});
