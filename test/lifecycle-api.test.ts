import { mkdtempSync, rmSync, statSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { PodLifecycleClient, type PodLifecycleItem, type WatchPodsOptions } from "../sdk/index.ts";
import { PodLifecycleDefinition } from "../src/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { NodekeeperError, Registry, silentLogger, stopped, systemClock } from "../src/lib/index.ts";
import { type LifecycleSettings, PodLifecycleEventGenerator } from "../src/lifecycle/index.ts";
import { MemoryRuntime } from "../src/lifecycle/testing/memory-runtime.ts";
import { LifecycleService, LocalApi } from "../src/server/index.ts";

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A generator on a runtime in memory, served on a real socket, and a client of it. */
async function setUp(settings: Partial<LifecycleSettings> = {}) {
  const directory = mkdtempSync(join(tmpdir(), "nodekeeper-api-"));
  ends.push(() => rmSync(directory, { recursive: true, force: true }));
  const socket = join(directory, "api", "nodekeeper.sock");
  const runtime = new MemoryRuntime();
  const common = { clock: systemClock, logger: silentLogger };
  const lifecycle = new PodLifecycleEventGenerator({
    ...common,
    runtime,
    registry: new Registry(),
    settings: { relistPeriodMs: 20, ...settings },
  });
  const generating = new AbortController();
  const running = lifecycle.run(generating.signal);
  ends.push(async () => {
    generating.abort(stopped("test is over"));
    await running;
  });
  const serve = () => {
    const controller = new AbortController();
    const api = new LocalApi({
      ...common,
      path: socket,
      checkIntervalMs: 50,
      addServices: (server, signal) => {
        const { events, statuses } = lifecycle;
        server.add(
          PodLifecycleDefinition,
          new LifecycleService({ events, statuses, clock: systemClock, signal }),
        );
      },
    });
    const serving = api.run(controller.signal);
    let isStopped = false;
    const stop = async () => {
      if (isStopped) return;
      isStopped = true;
      controller.abort(stopped("test is over"));
      await serving;
    };
    ends.push(stop);
    return { api, stop };
  };
  const { api, stop: stopApi } = serve();
  await vi.waitFor(() => expect(api.problem).toBeUndefined());
  const client = new PodLifecycleClient({ socket });
  ends.push(() => client.close());
  return { runtime, lifecycle, socket, client, stopApi, serve, api };
}

/** Follows a watch; `items` fills by itself. */
function follow(client: PodLifecycleClient, options: WatchPodsOptions = {}) {
  const items: PodLifecycleItem[] = [];
  const controller = new AbortController();
  const done = (async () => {
    for await (const item of client.watch(options, controller.signal)) items.push(item);
  })();
  const stop = async () => {
    controller.abort();
    await done;
  };
  ends.push(stop);
  const told = () =>
    items.flatMap((item) => (item.kind === "event" ? `${item.event.type} ${item.event.container?.id}` : []));
  return { items, told, stop };
}

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 8_000, interval: 10 });

describe("PodLifecycle over a socket", () => {
  it("begins with a snapshot, then tells what happens, with exit codes", async () => {
    const { runtime, client, socket } = await setUp();
    expect(statSync(socket).mode & 0o777).toBe(0o660);
    runtime.addPod("a");
    runtime.set("a", "a-1", "running");
    await eventually(async () => expect(await client.getPods()).toHaveLength(1));
    const { items, told } = follow(client, { withStatus: true });
    await eventually(() => expect(items).toHaveLength(1));
    expect(items[0]).toMatchObject({
      kind: "snapshot",
      why: "begin",
      pods: [
        {
          uid: "a",
          name: "pod-a",
          namespace: "default",
          containers: [
            { id: "a-sandbox", kind: "sandbox", state: "running" },
            { id: "a-1", kind: "container", state: "running" },
          ],
          status: { ips: ["10.0.0.1"] },
        },
      ],
    });
    runtime.set("a", "a-1", "exited", "container", 3);
    await eventually(() => expect(told()).toEqual(["ContainerDied a-1"]));
    expect(items[1]).toMatchObject({
      event: {
        exitCode: 3,
        reason: "Error",
        status: { containers: [{ id: "a-1", state: "exited", exitCode: 3 }] },
      },
    });
  });

  it("tells the pods asked for alone, and what was there already with an end", async () => {
    const { runtime, client, lifecycle } = await setUp();
    await eventually(() => expect(lifecycle.healthCheck().check().ok).toBe(true));
    for (const uid of ["a", "b"]) runtime.addPod(uid);
    await eventually(() => expect(lifecycle.events.last).toBe(2));
    const items: PodLifecycleItem[] = [];
    const selector = { namespace: "default", name: "pod-b" };
    for await (const item of client.watch({ since: 0, selector, stopAtEnd: true })) items.push(item);
    expect(items.filter(({ kind }) => kind === "event")).toHaveLength(1);
    expect(items[0]).toMatchObject({ event: { pod: { uid: "b" } } });
    expect(await client.getPods({ selector })).toMatchObject([{ uid: "b" }]);
    expect(await client.getPods({ selector: { uid: "nobody" } })).toEqual([]);
  });

  it("goes on after the agent was away, without a loss and without a repetition", async () => {
    const { runtime, client, lifecycle, stopApi, serve } = await setUp();
    runtime.addPod("a");
    const { told, items } = follow(client, { since: 0 });
    await eventually(() => expect(told()).toEqual(["ContainerStarted a-sandbox"]));
    await stopApi();
    runtime.set("a", "a-1", "running");
    await eventually(() => expect(lifecycle.events.last).toBe(2));
    serve();
    runtime.set("a", "a-2", "running");
    const all = ["ContainerStarted a-sandbox", "ContainerStarted a-1", "ContainerStarted a-2"];
    await eventually(() => expect(told()).toEqual(all));
    expect(items.filter(({ kind }) => kind === "snapshot")).toEqual([]);
  });

  it("tells a consumer that fell off the log's end, with what is there now", async () => {
    const { runtime, client, lifecycle } = await setUp({ logCapacity: 2 });
    const first = follow(client);
    await eventually(() => expect(first.items).toHaveLength(1));
    const { cursor } = first.items[0]!;
    await first.stop();
    runtime.addPod("a");
    for (const id of ["1", "2", "3"]) runtime.set("a", id, "running");
    await eventually(() => expect(lifecycle.events.last).toBe(4));
    const { items } = follow(client, { cursor });
    await eventually(() => expect(items).toHaveLength(1));
    expect(items[0]).toMatchObject({ kind: "snapshot", why: "fellOff", missed: 4, pods: [{ uid: "a" }] });
    const other = follow(client, { cursor: "anotherlog-7" });
    await eventually(() => expect(other.items).toHaveLength(1));
    expect(other.items[0]).toMatchObject({ why: "fellOff", missed: undefined });
  });

  it("refuses what is no cursor, and a fresh reading of nobody", async () => {
    const { client } = await setUp();
    const watching = client.watch({ cursor: "what is this" });
    await expect(watching.next()).rejects.toMatchObject({ code: "invalid", message: /not a cursor/ });
    await expect(client.getPods({ fresh: true })).rejects.toMatchObject({ code: "invalid", message: /uid/ });
  });

  it("a fresh reading is newer than the question", async () => {
    const { runtime, client } = await setUp({ relistPeriodMs: 500 });
    runtime.addPod("a");
    await eventually(async () => expect(await client.getPods()).toHaveLength(1));
    runtime.set("a", "a-1", "running");
    const [pod] = await client.getPods({ selector: { uid: "a" }, fresh: true });
    expect(pod?.containers).toMatchObject([{ id: "a-1" }]);
  });

  it("a consumer that never reads holds up nobody", async () => {
    const { runtime, client, lifecycle } = await setUp({ logCapacity: 500 });
    const lazy = client.watch({ since: 0 })[Symbol.asyncIterator]();
    runtime.addPod("a");
    await lazy.next();
    const { told } = follow(client, { since: 0 });
    for (let round = 0; round < 200; round++) runtime.set("a", `c${round}`, "running");
    await eventually(() => expect(lifecycle.events.last).toBe(201));
    await eventually(() => expect(told().at(-1)).toBe("ContainerStarted c199"));
    await lazy.return(undefined);
  });

  it("serves again when its socket was removed, and leaves another agent's alone", async () => {
    const { client, socket, serve, api } = await setUp();
    unlinkSync(socket);
    await eventually(async () => expect(await client.getPods()).toEqual([]));
    const second = serve();
    await eventually(() => expect(second.api.problem).toMatch(/another process serves/));
    expect(api.problem).toBeUndefined();
  });

  it("says where it looked when no agent is there", async () => {
    using client = new PodLifecycleClient({ socket: "/nonexistent/agent.sock" });
    await expect(client.getPods()).rejects.toThrow(/no agent answers at \/nonexistent\/agent.sock/);
    const error = await client
      .watch({ stopAtEnd: true })
      .next()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NodekeeperError);
  });
});
