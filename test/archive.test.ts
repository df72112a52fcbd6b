import { writeFileSync } from "node:fs";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Collector, type StoredLog } from "./support/collector.ts";
import { useEvictionNode } from "./support/eviction-node.ts";
import { hardPressure, pick, type TestEvictionPlugin } from "./support/eviction-plugin.ts";

const node = useEvictionNode();
let collector: Collector;
let plugin: TestEvictionPlugin;

beforeEach(async () => {
  collector = new Collector();
  await collector.start();
});
afterEach(() => collector.stop());

const start = (flags: Record<string, string> = {}) =>
  node.start({ archiveEndpoint: collector.endpoint, archiveInterval: "100ms", ...flags });

/** Evicts a pod, and waits until it is gone. */
async function evict(name: string): Promise<string> {
  const uid = node.cluster.addPod(name);
  plugin ??= await node.addPlugin("pressure");
  plugin.top = pick([name]);
  plugin.threshold = { ...hardPressure };
  await until(`${name} is evicted`, () => node.cluster.evictions().includes(name));
  plugin.threshold = {};
  return uid;
}
afterEach(() => {
  plugin = undefined as unknown as TestEvictionPlugin;
});

const of = (event: string): StoredLog[] => collector.distinct().filter((log) => log.event === event);
const explain = () => ({ events: collector.logs.map(({ event }) => event), log: node.agent.logLines });

async function untilLog(event: string, isIt: (log: StoredLog) => boolean): Promise<StoredLog> {
  await until(`a record ${event}`, () => of(event).some(isIt), { explain });
  return of(event).find(isIt)!;
}

const result = (name: string) => (log: StoredLog) => log.attributes["nodekeeper.result"] === name;

describe("the archive has", () => {
  it("an eviction from its decision to the end of the pod, in order, and its trace", async () => {
    await start({ archiveAttributes: "k8s.cluster.name=prod" });
    const uid = await evict("web");
    const selected = await untilLog("nodekeeper.eviction.decision", result("selected"));
    const ended = await untilLog("nodekeeper.eviction.decision", result("terminated"));
    const pod = await untilLog("nodekeeper.pod.ended", () => true);
    expect(selected.attributes).toMatchObject({
      "k8s.pod.uid": uid,
      "k8s.pod.name": "web",
      "k8s.namespace.name": "default",
      "nodekeeper.plugin": "pressure",
      "nodekeeper.schema.version": 1,
    });
    expect(selected.resource).toMatchObject({
      "service.name": "nodekeeper",
      "k8s.node.name": "worker-1",
      "k8s.node.uid": node.cluster.node().metadata.uid,
      "k8s.cluster.name": "prod",
    });
    // The explanation from the archive is the node's.
    const explained = await node.agent.api(`eviction/explain?pod=${uid}`);
    const rounds = of("nodekeeper.eviction.decision").map(({ body }) => body);
    for (const { times: _times, until: _until, ...round } of explained.rounds)
      if (round.victim || round.outcome) expect(rounds).toContainEqual(round);
    expect(of("nodekeeper.eviction.step").map(({ body }) => body)).toEqual(explained.steps);
    expect(pod.body.pod).toEqual(explained.history);
    expect(pod.attributes["nodekeeper.message"]).toMatch(/default\/web: Pod deleted (at|between) /);
    expect(of("nodekeeper.mark")[0]!.body).toMatchObject({ kind: "agentStarted" });
    const sequences = collector.logs.map(({ attributes }) => attributes["nodekeeper.record.sequence"]);
    expect(sequences).toEqual([...sequences].sort((a, b) => Number(a) - Number(b)));

    await until("the trace", () => collector.spans.length > 0, { explain });
    expect(collector.spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["evict pod", "threshold met", "send", "terminate"]),
    );
    const [whole] = collector.spans;
    expect(Buffer.from(whole!.traceId).toString("hex")).toBe(selected.traceId);
    expect(ended.traceId).toBe(selected.traceId);
    expect(whole!.status?.code).toBe(1);
    for (const span of collector.spans)
      expect(span.endTimeUnixNano).toBeGreaterThanOrEqual(span.startTimeUnixNano);
    expect((await node.agent.ready()).text).toContain("[+]ArchiveExported ok\n");
    expect(await node.agent.metrics()).toMatch(/nodekeeper_archive_exported_records_total [1-9]/);
  });

  it("each record once while the collector is down, slow, throttles, or is cut off", async () => {
    await start({ archiveTimeout: "2s" });
    await evict("first");
    await untilLog("nodekeeper.eviction.decision", result("terminated"));
    const before = collector.logs.length;
    await collector.stop();
    await evict("second");
    await until("the warning", async () => (await node.agent.ready()).text.includes("can't be exported"), {
      explain,
    });
    expect((await node.agent.ready()).status).toBe(200);
    let answers = 0;
    collector.answer = ({ logs }) => {
      // Traces have requests of their own.
      if (logs.length === 0) return {};
      answers++;
      if (answers === 1) return { status: 429, headers: { "retry-after": "1" } };
      if (answers === 2) return { status: 503 };
      if (answers === 3) return { isCut: true };
      return {};
    };
    await collector.start();
    await until("the second pod", () => of("nodekeeper.pod.ended").length === 2, { explain });
    expect(collector.logs.length).toBeGreaterThan(collector.distinct().length);
    expect(collector.distinct().length).toBeGreaterThan(before);
    const sequences = collector.distinct().map(({ attributes }) => attributes["nodekeeper.record.sequence"]);
    expect(new Set(sequences).size).toBeGreaterThan(5);
    await until("the lag is gone", async () =>
      /nodekeeper_archive_queued_records 0/.test(await node.agent.metrics()),
    );
  });

  it("what is left of the records after the collector refused some", async () => {
    let refusals = 0;
    collector.answer = () => (refusals++ === 0 ? { status: 400 } : { rejected: 0 });
    await start();
    await until("the refusal", () => refusals > 0);
    await evict("web");
    await untilLog("nodekeeper.eviction.decision", result("terminated"));
    expect(of("nodekeeper.mark")).toEqual([]);
    await until("the gap", () => of("nodekeeper.gap").length === 1);
    const [line] = node.agent.logLines.filter(({ errorId }) => errorId === "NK1902");
    expect(line).toMatchObject({ dropped: 1, first: { event: "nodekeeper.mark" } });
    expect(await node.agent.metrics()).toMatch(/dropped_records_total\{reason="refused"\} 1/);
  });

  it("headers from a file, and an end of the agent with what was queued last", async () => {
    const headersFile = `${node.cluster.directory}/headers`;
    writeFileSync(headersFile, "# from a Secret\nAuthorization: Bearer one\n");
    await start({ archiveHeadersFile: headersFile, archiveInterval: "10m" });
    await until("the first records", () => collector.requests.length > 0, { explain });
    expect(collector.requests[0]!.headers).toMatchObject({
      authorization: "Bearer one",
      "content-type": "application/x-protobuf",
      "content-encoding": "gzip",
    });
    writeFileSync(headersFile, "Authorization: Bearer two\n");
    await evict("web");
    await until("its end", () => node.cluster.server.store.list("pods").length === 0);
    expect(of("nodekeeper.pod.ended")).toEqual([]);
    await node.agent.stop();
    expect(of("nodekeeper.pod.ended")).toHaveLength(1);
    expect(collector.requests.at(-1)!.headers.authorization).toBe("Bearer two");
  });
});
