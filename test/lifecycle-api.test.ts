import { mkdtempSync, rmSync, statSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PodLifecycleDefinition } from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { NodekeeperError, Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { PodLifecycleClient, type PodLifecycleItem, type WatchPodsOptions } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { createClient } from "nice-grpc";
import { afterEach, describe, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { runCommand } from "../packages/agent/src/cli/testing/run-command.ts";
import { type LifecycleSettings, PodLifecycleEventGenerator } from "../packages/agent/src/lifecycle/index.ts";
import { MemoryRuntime } from "../packages/agent/src/lifecycle/testing/memory-runtime.ts";
import {
  LifecycleService,
  LocalApi,
  lifecycleDefinition,
  lifecycleRoutes,
} from "../packages/agent/src/server/index.ts";
import { serveRoutes } from "../packages/agent/src/server/testing/serve-routes.ts";

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A generator on a runtime in memory, served on a real socket, and a client of it. */
async function setUp(
  settings: Partial<LifecycleSettings> = {},
  mostWatches = 1_024,
  runtime = new MemoryRuntime(),
) {
  const directory = mkdtempSync(join(tmpdir(), "nodekeeper-api-"));
  ends.push(() => rmSync(directory, { recursive: true, force: true }));
  const socket = join(directory, "api", "nodekeeper.sock");
  const common = { clock: systemClock, log: silentLogger };
  const lifecycle = new PodLifecycleEventGenerator({
    ...common,
    runtime,
    registry: new Registry(),
    settings: { relistPeriod: 20, ...settings },
  });
  const generating = new AbortController();
  const running = lifecycle.run(generating.signal);
  ends.push(async () => {
    generating.abort(stopped("test is over"));
    await running;
  });
  const refused: string[] = [];
  const serve = () => {
    const controller = new AbortController();
    const api = new LocalApi({
      ...common,
      path: socket,
      addServices: (server, signal) => {
        server.add(
          lifecycleDefinition,
          new LifecycleService({
            lifecycle,
            clock: systemClock,
            signal,
            mostWatches,
            onRefused: (message) => refused.push(message),
          }),
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
  await eventually(() => expect(api.problem).toBeUndefined());
  const client = new PodLifecycleClient({ socket });
  ends.push(() => client.close());
  return { runtime, lifecycle, socket, client, stopApi, serve, api, refused };
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

describe("PodLifecycle over a socket", () => {
  it("starts with a snapshot, then emits what happens, with exit codes", async () => {
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

  it("emits the pods asked for alone, and what was there already with an end", async () => {
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
    expect(await client.getPods({ selector: { uid: "absent" } })).toEqual([]);
  });

  it("continues after the agent was stopped, without a loss and without a repetition", async () => {
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

  it("notifies a consumer that fell off the log's end, with what is there now", async () => {
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

  it("refuses what is no cursor, and a fresh reading of no pod", async () => {
    const { client } = await setUp();
    const watching = client.watch({ cursor: "what is this" });
    await expect(watching.next()).rejects.toMatchObject({ code: "invalid", message: /not a cursor/ });
    await expect(client.getPods({ fresh: true })).rejects.toMatchObject({ code: "invalid", message: /uid/ });
  });

  it("a fresh reading is newer than the question", async () => {
    const { runtime, client } = await setUp({ relistPeriod: 500 });
    runtime.addPod("a");
    await eventually(async () => expect(await client.getPods()).toHaveLength(1));
    runtime.set("a", "a-1", "running");
    const [pod] = await client.getPods({ selector: { uid: "a" }, fresh: true });
    expect(pod?.containers).toMatchObject([{ id: "a-1" }]);
  });

  it("a consumer that never reads delays no other", async () => {
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

  it("1,000 watches on one client all get every event, and other calls are answered beside them", async () => {
    const { runtime, client, lifecycle } = await setUp({ relistPeriod: 5 });
    const watches = Array.from({ length: 1_000 }, () => follow(client));
    await eventually(() => expect(watches.filter(({ items }) => items.length === 0)).toEqual([]));
    expect(lifecycle.events.consumers).toBe(1_000);
    runtime.addPod("a");
    runtime.set("a", "a-1", "running");
    expect(await client.getPods()).toBeDefined();
    await eventually(() => expect(watches.filter(({ told }) => told().length < 2)).toEqual([]));
    const expected = ["ContainerStarted a-sandbox", "ContainerStarted a-1"];
    for (const { told } of watches) expect(told()).toEqual(expected);
  });

  it("refuses a watch beyond the limit with an error, and serves it when another has ended", async () => {
    const { client, lifecycle, refused } = await setUp({}, 2);
    const [first] = [follow(client), follow(client)];
    await eventually(() => expect(lifecycle.events.consumers).toBe(2));
    const error = await client
      .watch({ stopAtEnd: true })
      .next()
      .catch((error: unknown) => error);
    const message = "2 watches are open, which is the limit";
    expect(error).toMatchObject({ code: "exhausted", message });
    expect(refused).toEqual([message]);
    expect(await client.getPods()).toEqual([]);
    await first!.stop();
    await eventually(() => expect(lifecycle.events.consumers).toBe(1));
    const third = follow(client);
    await eventually(() => expect(third.items).toHaveLength(1));
  });

  it("reads the status again for a fresh reading, also of a pod whose containers are unchanged", async () => {
    const { runtime, client } = await setUp();
    runtime.addPod("a", ["10.0.0.1"]);
    const selector = { uid: "a" };
    await eventually(async () => expect(await client.getPods({ selector })).toHaveLength(1));
    runtime.pods.get("a")!.ips = ["10.9.9.9"];
    expect(await client.getPods({ selector, fresh: true })).toMatchObject([{ ips: ["10.9.9.9"], error: "" }]);
    runtime.before = (call) => {
      if (call === "podStatus") throw new NodekeeperError("unavailable", "PodSandboxStatus: no response");
    };
    const [failed] = await client.getPods({ selector, fresh: true });
    expect(failed).toMatchObject({ ips: ["10.9.9.9"], error: expect.stringContaining("no response") });
    runtime.removePod("a");
    expect(await client.getPods({ selector, fresh: true })).toEqual([]);
  });

  it("has what is known of a pod that could not be inspected until it was removed", async () => {
    const { runtime, client, lifecycle } = await setUp();
    runtime.addPod("read");
    await eventually(async () => expect(await client.getPods()).toHaveLength(1));
    const { told, items } = follow(client, { since: 0 });
    runtime.before = (call) => {
      if (call === "podStatus") throw new NodekeeperError("unavailable", "PodSandboxStatus: no response");
    };
    const before = lifecycle.events.last;
    runtime.set("read", "read-2", "running");
    runtime.addPod("unread");
    runtime.set("unread", "unread-1", "exited", "container", 3);
    await eventually(async () => {
      const pods = await client.getPods();
      expect(pods.map(({ error }) => error !== "")).toEqual([true, true]);
    });
    await eventually(() => expect(lifecycle.problems()).toMatchObject([/can't inspect 2 pods/]));
    expect(lifecycle.events.last).toBe(before);
    runtime.removePod("read");
    runtime.removePod("unread");
    await eventually(async () => expect(await client.getPods()).toEqual([]));
    const eventsOf = (uid: string) =>
      items.flatMap((item) =>
        item.kind === "event" && item.event.pod.uid === uid
          ? `${item.event.type} ${item.event.container?.id ?? item.event.reason}`
          : [],
      );
    const ended = (id: string) => [`ContainerDied ${id}`, `ContainerRemoved ${id}`];
    await eventually(() => expect(told().filter((text) => text.startsWith("PodSync"))).toHaveLength(2));
    expect(eventsOf("read").filter((text) => !text.includes("read-sandbox"))).toEqual([
      "ContainerStarted read-2",
      ...ended("read-2"),
      "PodSync InspectionFailed",
    ]);
    expect(eventsOf("unread")).toEqual([
      "ContainerDied unread-1",
      "ContainerStarted unread-sandbox",
      "ContainerRemoved unread-1",
      ...ended("unread-sandbox"),
      "PodSync InspectionFailed",
    ]);
  });

  it("gives a long log in order, event by event to consumers that know no batches", async () => {
    const { runtime, client, lifecycle, socket } = await setUp();
    runtime.addPod("a");
    for (let at = 0; at < 1_000; at++) runtime.set("a", `c${at}`, "running");
    await eventually(() => expect(lifecycle.events.last).toBe(1_001));
    const items: PodLifecycleItem[] = [];
    for await (const item of client.watch({ since: 0, stopAtEnd: true })) items.push(item);
    const sequences = items.map((item) => (item.kind === "event" ? item.event.sequence : 0));
    expect(sequences).toEqual(Array.from({ length: 1_001 }, (_, at) => at + 1));
    expect(items.map(({ cursor }) => cursor)).toEqual(sequences.map((n) => `${lifecycle.events.id}-${n}`));

    const channel = dialUnix(socket, { maxReceiveBytes: 2 ** 20 });
    ends.push(() => channel.close());
    const bare = createClient(PodLifecycleDefinition, channel);
    const singles: unknown[] = [];
    for await (const answer of bare.watch({ since: 0n, stopAtEnd: true }))
      singles.push(answer.event?.sequence);
    expect(singles).toEqual(sequences.map(BigInt));
  });

  it("serves again when its socket was removed, and leaves another agent's alone", async () => {
    const { client, socket, serve, api } = await setUp();
    unlinkSync(socket);
    await eventually(async () => expect(await client.getPods()).toEqual([]));
    const second = serve();
    await eventually(() => expect(second.api.problem).toMatch(/another process serves/));
    expect(api.problem).toBeUndefined();
  });

  it("refuses snapshots and readings before the first list, after a bound and with the reason", async () => {
    const runtime = new MemoryRuntime();
    runtime.before = (call) => {
      if (call === "listPods") throw new NodekeeperError("unavailable", "ListContainers: connection refused");
    };
    const { client, lifecycle } = await setUp({ firstListTimeoutMs: 50 }, 10, runtime);
    const status = await serveRoutes(lifecycleRoutes(lifecycle, systemClock));
    ends.push(status.stop);
    const reason = /^no relist has succeeded since the start .* ago; .*ListContainers: connection refused/;
    await expect(client.getPods()).rejects.toMatchObject({ code: "unavailable", message: reason });
    const watching = client.watch({ withStatus: true, stopAtEnd: true });
    await expect(watching.next()).rejects.toMatchObject({ code: "unavailable", message: reason });
    const retries: string[] = [];
    const { items } = follow(client, { onRetry: ({ message }) => retries.push(message) });
    await eventually(() => expect(retries[0]).toMatch(reason));
    const argv = ["node", "nodekeeper", "pods", "--server", status.address];
    expect(await runCommand((output) => runCli(argv, output))).toMatchObject({
      status: 1,
      out: "",
      stderr: expect.stringMatching(/no relist has succeeded/),
    });
    runtime.addPod("a");
    runtime.before = () => {};
    await eventually(() => expect(items).toMatchObject([{ kind: "snapshot", pods: [{ uid: "a" }] }]));
  });

  it("names where it looked when no agent is there", async () => {
    using client = new PodLifecycleClient({ socket: "/nonexistent/agent.sock" });
    await expect(client.getPods()).rejects.toThrow(/no agent responds at \/nonexistent\/agent.sock/);
    const error = await client
      .watch({ stopAtEnd: true })
      .next()
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(NodekeeperError);
  });
});
