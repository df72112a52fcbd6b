import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { PodLifecycleDefinition } from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { systemClock } from "@nodekeeper/core/lib";
import { PodLifecycleClient } from "@nodekeeper/sdk";
import { SimulatedCri, SimulatedRuntime, SteppedClock } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { createClient, Status } from "nice-grpc";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { runCommand } from "../packages/agent/src/cli/testing/run-command.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { EventStreamClient } from "./support/event-stream.ts";

const REASON = /no relist has succeeded since the start/;

let cluster: TestCluster;
let clock: SteppedClock;
let runtime: SimulatedRuntime;
let cri: SimulatedCri;
let agent: RunningAgent;
let socket: string;
const ends: (() => Promise<void> | void)[] = [];

beforeEach(async () => {
  cluster = await startCluster();
  clock = new SteppedClock();
  runtime = new SimulatedRuntime({ clock: systemClock });
  cri = new SimulatedCri({ runtime, socket: join(cluster.directory, "cri.sock"), clock: systemClock });
  socket = join(cluster.directory, "agent.sock");
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await agent?.stop();
  await cri.stop();
  await cluster.stop();
});

const start = async () => {
  agent = await startAgent(cluster, { lifecycle: "true", runtimeEndpoint: cri.socket }, undefined, clock);
  await until("the agent's socket", () => existsSync(socket));
};

/** A pod and a cursor that an agent gave whose state directory was lost since. */
async function oldCursor(): Promise<{ container: string; cursor: string }> {
  await cri.start();
  const sandbox = runtime.runSandbox({ uid: "uid-a", name: "a", namespace: "default" });
  const container = runtime.runContainer(sandbox, { name: "app" });
  await start();
  const { cursor } = await agent.api("pods");
  await agent.stop();
  rmSync(agent.stateDir, { recursive: true });
  return { container, cursor };
}

const get = (path: string) => fetch(`http://${agent.address}/api/v1/${path}`);

/** What a promise gives once the time that consumers wait for the first list is over. */
async function afterTheWait<T>(promise: Promise<T>): Promise<T> {
  let isDone = false;
  const done = promise.finally(() => {
    isDone = true;
  });
  done.catch(() => {});
  await until("the wait is over", async () => {
    if (!isDone) clock.advance(500);
    return isDone;
  });
  return await done;
}

const cli = (...args: string[]) =>
  runCommand((output) => runCli(["node", "nodekeeper", ...args, "--server", agent.address], output));

/** Streams of the topic `events`. */
async function stream(cursor = ""): Promise<EventStreamClient> {
  const url = `http://${agent.address}/api/v1/stream?topics=events,node`;
  const client = await EventStreamClient.open(url, cursor ? { "Last-Event-ID": `${cursor}.-.-` } : {});
  ends.push(() => client.close());
  return client;
}

describe("while the container runtime can't be reached since the start", () => {
  it("HTTP refuses an old cursor, a time and a list of pods, with the reason and when to try again", async () => {
    const { cursor } = await oldCursor();
    await cri.stop();
    await start();
    for (const path of [`events?cursor=${cursor}`, "events?since=0", "pods"]) {
      const answer = await afterTheWait(get(path));
      expect({ path, status: answer.status }).toEqual({ path, status: 503 });
      expect(Number(answer.headers.get("Retry-After"))).toBeGreaterThan(0);
      const { error } = (await answer.json()) as { error: unknown };
      expect(error).toMatchObject({
        code: "unavailable",
        id: "NK1408",
        message: expect.stringMatching(REASON),
      });
    }
  });

  it("no command prints a node without pods or events", async () => {
    const { cursor } = await oldCursor();
    await cri.stop();
    await start();
    for (const args of [["pods"], ["events", "--since", cursor], ["events"], ["events", "-o", "json"]]) {
      const printed = await afterTheWait(cli(...args));
      expect({ args, ...printed }).toEqual({
        args,
        status: 1,
        out: "",
        stderr: expect.stringMatching(REASON),
      });
      expect(printed.stderr).toContain("NK1408");
    }
  });

  it("gRPC refuses an old cursor as unavailable, with the reason, and the SDK knows that it is the runtime", async () => {
    const { cursor } = await oldCursor();
    await cri.stop();
    await start();
    const channel = dialUnix(socket, { maxReceiveBytes: 2 ** 20 });
    ends.push(() => channel.close());
    const bare = createClient(PodLifecycleDefinition, channel);
    const first = bare.watch({ cursor })[Symbol.asyncIterator]().next();
    const refused = { code: Status.UNAVAILABLE, details: expect.stringMatching(REASON) };
    await expect(afterTheWait(first)).rejects.toMatchObject(refused);
    await expect(afterTheWait(bare.get({}))).rejects.toMatchObject(refused);

    using client = new PodLifecycleClient({ socket });
    const reason = { code: "unavailable", id: "NK1408", message: expect.stringMatching(/^no relist has/) };
    const watching = client.watch({ cursor, stopAtEnd: true }).next();
    await expect(afterTheWait(watching)).rejects.toMatchObject(reason);
    await expect(afterTheWait(client.getPods())).rejects.toMatchObject(reason);
  });

  it("a stream reports what it waits for, and has the node and its events once there is a list", async () => {
    const { cursor, container } = await oldCursor();
    await cri.stop();
    await start();
    const streams = [await stream(cursor), await stream()];
    for (const each of streams) {
      const { data } = await each.untilEvent("waiting");
      expect(data).toEqual({ topic: "events", id: "NK1408", message: expect.stringMatching(REASON) });
      await each.untilEvent("node");
      expect(each.of("snapshot")).toEqual([]);
    }
    // A client that was cut off meanwhile continues with the id that it has.
    streams.push(await stream(streams[1]!.lastId.split(".")[0]));
    await cri.start();
    for (const each of streams)
      expect((await each.untilEvent("snapshot")).data.pods).toMatchObject([
        { name: "a", namespace: "default" },
      ]);
    runtime.exit(container, 3);
    for (const each of streams) {
      await each.untilEvent("events", ({ event }) => event.type === "ContainerDied" && event.exitCode === 3);
      expect(each.of("snapshot")).toHaveLength(1);
    }
  });
});

describe("while the first list is slow", () => {
  it("each consumer with an old cursor waits for it, and none gets an empty node", async () => {
    const { cursor } = await oldCursor();
    let isHeld = true;
    cri.faults = ({ method }) => (isHeld && method === "ListPodSandbox" ? { hang: true } : undefined);
    await cri.restart();
    await start();
    using client = new PodLifecycleClient({ socket });
    const pages = Promise.all([
      get(`events?cursor=${cursor}`).then((answer) => answer.json()),
      client.watch({ cursor, stopAtEnd: true }).next(),
      stream(cursor).then((each) => each.untilEvent("snapshot")),
      cli("events", "--since", cursor, "-o", "json"),
      cli("pods", "-o", "json"),
    ]);
    await eventually(async () => expect((await agent.ready()).text).toContain("list of all pods (0 known)"));
    isHeld = false;
    await cri.restart();
    const [page, watched, streamed, events, pods] = await pages;
    const pod = { name: "a", namespace: "default" };
    expect(page).toMatchObject({ items: [{ kind: "snapshot", pods: [pod] }], end: true });
    expect(watched.value).toMatchObject({ kind: "snapshot", pods: [pod] });
    expect(streamed.data.pods).toMatchObject([pod]);
    expect(JSON.parse(events.out)).toMatchObject({ kind: "snapshot", pods: [pod] });
    expect(JSON.parse(pods.out)).toMatchObject([pod]);
  });
});

describe("after a restart while the container runtime can't be reached", () => {
  it("events of before are given, with a warning that the runtime is not listed since the start", async () => {
    await cri.start();
    const sandbox = runtime.runSandbox({ uid: "uid-a", name: "a", namespace: "default" });
    await start();
    await eventually(async () => expect((await agent.api("pods")).items).toHaveLength(1));
    runtime.runContainer(sandbox, { name: "app" });
    const cursor = await until("its event", async () => {
      const page = await agent.api("events?since=0");
      return page.items.length > 0 && page.cursor;
    });
    await agent.stop();
    await cri.stop();
    await start();
    // The warning comes with the first list that fails.
    await eventually(async () =>
      expect(await cli("events")).toEqual({
        status: 0,
        out: expect.stringMatching(/ContainerStarted +default\/a/),
        stderr: expect.stringMatching(/the container runtime has not been listed since the agent started/),
      }),
    );
    await eventually(async () =>
      expect(await agent.api(`events?cursor=${cursor}`)).toMatchObject({
        items: [],
        end: true,
        problems: [expect.stringMatching(/last error/)],
      }),
    );
  });
});
