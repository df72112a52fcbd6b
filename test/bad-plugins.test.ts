import { eventually, until } from "@nodekeeper/testing/until";
import { ServerError, Status } from "nice-grpc";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type Neighbour, startNeighbour, useNeighbour } from "./support/neighbour.ts";
import { aborted, constantly, startBarePlugin, widgets } from "./support/plugins.ts";

const node = useNeighbour();

const start = (name: string, service: Parameters<typeof startBarePlugin>[2], host = node.agent) =>
  startBarePlugin(host.pluginDir, name, service);

// biome-ignore lint/correctness/useYield: a stream on which nothing ever comes
async function* silence(_: unknown, { signal }: { signal: AbortSignal }): AsyncGenerator<never> {
  await aborted(signal);
}

async function untilBlamed(name: string, error: RegExp, host = node.agent): Promise<void> {
  const look = async () => error.test((await host.plugin(name))?.error ?? "");
  await until(`${name} is named with ${error}`, look, { explain: () => host.plugin(name) });
}

describe("with a call timeout of 500 ms", () => {
  let own: TestCluster;
  let impatient: RunningAgent;
  let beside: Neighbour;

  beforeAll(async () => {
    own = await startCluster();
    impatient = await startAgent(own, { reportingCallTimeout: "500ms" });
    beside = await startNeighbour(own, impatient.pluginDir);
  });
  afterAll(async () => {
    await beside.stop();
    await impatient.stop();
    await own.stop();
  });

  it("one that never answers", async () => {
    const service = {
      getReportContent: async (_: unknown, { signal }: { signal: AbortSignal }) => {
        await aborted(signal);
        return {};
      },
      listAndWatchReportContent: silence,
    };
    const hung = await start("hung", service, impatient);
    await untilBlamed("hung", /^GetReportContent: no response within 500 ms$/, impatient);
    await beside.update();
    await until("the agent is ready", async () => (await impatient.ready()).status === 200);
    await beside.update();
    hung.stop();
  });

  it("one that answers too late, until it answers in time", async () => {
    let isLate = true;
    let lateAnswers = 0;
    const service = {
      getReportContent: async (_: unknown, { signal }: { signal: AbortSignal }) => {
        if (!isLate) return { content: [widgets("late", 2)] };
        await aborted(signal);
        lateAnswers++;
        return { content: [widgets("late", 1)] };
      },
      listAndWatchReportContent: silence,
    };
    const late = await start("late", service, impatient);
    await untilBlamed("late", /^GetReportContent: no response within 500 ms$/, impatient);
    await until("a late answer", () => lateAnswers > 0);
    await beside.update();
    expect(own.widgets("late")).toBeUndefined();
    isLate = false;
    await untilWidgets(own, "late", 2);
    await until("it is no longer blamed", async () => !(await impatient.plugin("late"))?.error);
    late.stop();
  });
});

it("one whose stream breaks again and again", async () => {
  let streams = 0;
  const broken = await start("broken", {
    getReportContent: async () => {
      throw new ServerError(Status.INTERNAL, "sensor is on fire");
    },
    async *listAndWatchReportContent() {
      yield { content: [widgets("broken", ++streams)] };
      throw new ServerError(Status.INTERNAL, "and the stream burns");
    },
  });
  await untilWidgets(node.cluster, "broken", 1);
  await untilBlamed(
    "broken",
    /^GetReportContent: sensor is on fire; ListAndWatchReportContent: and the stream burns$/,
  );
  await node.neighbour.update();
  await untilWidgets(node.cluster, "broken", 2);
  await node.neighbour.update();
  broken.stop();
});

it("one without a stream is polled, which is no failure", async () => {
  const plugin = await start("still", {
    getReportContent: async () => ({ content: [widgets("still", 1)] }),
    // biome-ignore lint/correctness/useYield: there is no stream
    async *listAndWatchReportContent() {
      throw new ServerError(Status.UNIMPLEMENTED, "Method not implemented!");
    },
  });
  await untilWidgets(node.cluster, "still", 1);
  const stream = async () => {
    const { calls } = await node.agent.api("plugins/exchange?type=ReporterPlugin&name=still");
    return calls.find(({ call }: { call: string }) => call === "ListAndWatchReportContent");
  };
  await eventually(async () => {
    expect(await stream()).toEqual({
      call: "ListAndWatchReportContent",
      at: expect.any(Number),
      isUnimplemented: true,
    });
    const row = await node.agent.plugin("still");
    expect(row).toMatchObject({ state: "registered", calls: { failures: 0 } });
    expect(row).not.toHaveProperty("error");
  });
  expect(await node.agent.metrics()).not.toMatch(/call_failures_total\{plugin="still"/);
  plugin.stop();
});

it("one that dies mid-stream keeps its content, and comes back with new", async () => {
  const first = await start("mortal", constantly(widgets("mortal", 1)));
  await untilWidgets(node.cluster, "mortal", 1);
  first.stop();
  await untilBlamed("mortal", /./);
  await node.neighbour.update();
  expect(node.cluster.widgets("mortal")).toBe("1");
  const second = await start("mortal", constantly(widgets("mortal", 2)));
  await untilWidgets(node.cluster, "mortal", 2);
  // The first one may still remove the socket as it stops: the second one makes it again, and is registered again.
  await eventually(async () => expect((await node.agent.plugin("mortal"))?.state).toBe("registered"));
  second.stop();
});
