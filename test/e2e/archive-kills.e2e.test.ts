import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isEvicted } from "@nodekeeper/api/archive";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { Archive } from "../../packages/agent/src/cli/archive/archive.ts";
import { StoredRows } from "../../packages/agent/src/cli/archive/stored-rows.ts";
import { VictoriaLogs } from "../../packages/agent/src/cli/archive/victoria-logs.ts";
import { openStoredRecords } from "../../packages/agent/src/cli/eviction/stored-records.ts";
import { agentFlags } from "../support/agent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { hardPressure, startEvictionPlugin, type TestEvictionPlugin } from "../support/eviction-plugin.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";
import { OtelCollector } from "./support/otel-collector.ts";
import { missingParts } from "./support/parts.ts";
import { VictoriaLogsServer } from "./support/victoria-logs.ts";

const missing = missingParts("otelCollector", "victoriaLogs");
const SECONDS = Number(process.env.E2E_ARCHIVE_KILLS_SECONDS ?? 60);
const RECORDS = `{"service.name"="nodekeeper"}
  | fields event_name, "nodekeeper.record.id", "nodekeeper.record.sequence", "k8s.pod.uid", "nodekeeper.round", "nodekeeper.result"`;

/** A row of a record. */
interface Row {
  id: string;
  sequence: number;
  event: string;
  uid: string;
  round: string;
  result: string;
}

/** Records that are compared with those of the node: selections and ends of evictions, and ends of pods. */
function isCompared({ event, result }: Row): boolean {
  if (event === "nodekeeper.eviction.decision") return result !== "refused" && result !== "withdrawing";
  return event === "nodekeeper.pod.ended";
}

function keyOf({ event, uid, round }: Pick<Row, "event" | "uid" | "round">): string {
  return `${event} ${uid} ${round}`;
}

// An agent exports to a collector, which sends to two stores and does not queue. All are killed at random; of the stores, one
// at a time. What a kill takes from the memory of a store, the other one has.
describe.skipIf(missing)("records in two real VictoriaLogs behind a real collector", () => {
  let cluster: TestCluster;
  let collector: OtelCollector;
  let stores: VictoriaLogsServer[];
  let agent: ScriptProcess;
  let plugin: TestEvictionPlugin;
  const kills: Record<string, number> = { agent: 0, collector: 0, store: 0 };

  afterEach(async () => {
    agent.kill("SIGKILL");
    await agent.ended;
    await plugin.stop();
    await collector.kill();
    for (const store of stores) await store.child.kill();
    await cluster.stop();
  });

  const explain = () => `${agent.output().slice(-3_000)}\n${collector.output.slice(-3_000)}`;

  function startAgent(): void {
    const archive = { archiveInterval: "100ms", archiveEndpoint: collector.endpoint("http") };
    const flags = argumentsOf({ ...agentFlags(cluster), ...archive });
    agent = startScript("packages/agent/src/main.ts", ["run", ...flags]);
  }

  /** Adds a pod to be evicted, and one that somebody else deletes, every second. */
  async function work(signal: AbortSignal): Promise<void> {
    for (let at = 0; !signal.aborted; at++) {
      cluster.addPod(`evicted-${at}`);
      cluster.addPod(`deleted-${at}`);
      await sleep(1_000, undefined, { signal }).catch(() => {});
      cluster.server.store.delete("pods", `deleted-${at}`, "default");
    }
  }

  const killers = {
    async agent() {
      agent.kill("SIGKILL");
      await agent.ended;
      startAgent();
      kills.agent!++;
    },
    async collector() {
      await collector.kill();
      await sleep(Math.random() * 2_000);
      await collector.start();
      kills.collector!++;
    },
    async store() {
      // What the last kill took from one of them must be on the disk of the other.
      for (const store of stores) await store.flushed();
      const store = stores[Math.floor(Math.random() * stores.length)]!;
      await store.child.kill();
      await sleep(Math.random() * 2_000);
      await store.restart();
      kills.store!++;
    },
  };

  /** Kills one kind of process at random times. */
  async function killSome(kill: () => Promise<void>, atMostMs: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(Math.random() * atMostMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await kill();
    }
  }

  async function rowsOf(store: VictoriaLogsServer): Promise<Row[]> {
    const rows = await store.query(RECORDS);
    return rows.map((row) => ({
      id: row["nodekeeper.record.id"]!,
      sequence: Number(row["nodekeeper.record.sequence"]),
      event: row.event_name!,
      uid: row["k8s.pod.uid"] ?? "",
      round: row["nodekeeper.round"] ?? "",
      result: row["nodekeeper.result"] ?? "",
    }));
  }

  /** What the state database of the node has, and the pods that the agent evicted, by UID. */
  async function recordsOfNode(): Promise<{ keys: Set<string>; evicted: Set<string> }> {
    using source = await openStoredRecords(join(cluster.directory, "state"));
    const [keys, evicted] = [new Set<string>(), new Set<string>()];
    for await (const { id, input, decision } of source.records(0)) {
      const event = "nodekeeper.eviction.decision";
      for (const { uid } of [...decision.victims, ...input.outcomes])
        keys.add(keyOf({ event, uid, round: String(id) }));
      for (const { uid, result, sent } of input.outcomes)
        if (result === "terminated" && sent !== false) evicted.add(uid);
    }
    for await (const line of source.history(0))
      if (line.kind === "pod" && line.pod.leftAt !== null)
        keys.add(keyOf({ event: "nodekeeper.pod.ended", uid: line.pod.uid, round: "" }));
    return { keys, evicted };
  }

  it(`are there exactly once after ${SECONDS} s of kills`, async () => {
    cluster = await startCluster();
    const start = (name: string) =>
      VictoriaLogsServer.start(join(cluster.directory, name), { inmemoryDataFlushInterval: "1s" });
    stores = [await start("store-0"), await start("store-1")];
    collector = new OtelCollector(
      cluster.directory,
      undefined,
      stores.map(({ endpoint }) => endpoint),
    );
    await collector.start();
    mkdirSync(agentFlags(cluster).pluginDirectories!, { recursive: true });
    startAgent();
    plugin = await startEvictionPlugin(agentFlags(cluster).pluginDirectories!, "pressure");
    plugin.threshold = { ...hardPressure };
    plugin.top = (offered, pods) => ({
      targetPods: pods.filter((_, at) => offered[at]!.startsWith("evicted-")).slice(0, 1),
    });

    const ends = new AbortController();
    const { signal } = ends;
    const running = [
      work(signal),
      killSome(killers.agent, 8_000, signal),
      killSome(killers.collector, 10_000, signal),
      killSome(killers.store, 6_000, signal),
    ];
    await sleep(SECONDS * 1_000);
    // On a slow machine, too, each is killed twice.
    await until("two kills of each", () => Math.min(...Object.values(kills)) > 1, { explain });
    ends.abort();
    await Promise.all(running);

    // A new agent does not wait for the delays of the last one.
    await killers.agent();
    // On a slow machine, no agent may have lived long enough for an eviction.
    const isAnyEvicted = async () => (await recordsOfNode()).evicted.size > 0;
    await until("an eviction", isAnyEvicted, { explain });
    plugin.threshold = {};
    let rows: Row[][] = [];
    let distinct: Row[] = [];
    let recorded = await recordsOfNode();
    const archived = () => new Set(distinct.filter(isCompared).map(keyOf));
    const isWhole = async () => {
      await sleep(1_000);
      // First the archive: it has nothing that the node has not.
      rows = await Promise.all(stores.map(rowsOf));
      distinct = [...new Map(rows.flat().map((row) => [row.id, row])).values()];
      recorded = await recordsOfNode();
      return lacking().length === 0 && sequences().every((sequence, at) => sequence === at + 1);
    };
    const lacking = () => {
      const there = archived();
      return [...recorded.keys].filter((key) => !there.has(key));
    };
    // Rows may become visible after others that were written later.
    const sequences = () => [...new Set(distinct.map(({ sequence }) => sequence))].sort((a, b) => a - b);
    await until("the node's records, without a gap", isWhole, {
      explain: () => [
        lacking(),
        sequences().filter((sequence, at, all) => sequence !== (all[at - 1] ?? 0) + 1),
        explain(),
      ],
    });
    expect([...archived()].filter((key) => !recorded.keys.has(key))).toEqual([]);

    const stored = rows.map((some) => `${new Set(some.map(({ id }) => id)).size} in ${some.length} rows`);
    console.log(
      `${SECONDS} s, killed ${JSON.stringify(kills)}: ${recorded.evicted.size} pods evicted, ${distinct.length} records; in one store ${stored.join(", in the other ")}`,
    );
    // As the user is told.
    const urls = stores.map(({ url }) => new VictoriaLogs({ url, caFile: "", headersFile: "" }));
    // An eviction may still end.
    await eventually(async () => {
      const found = await new Archive(new StoredRows(urls, {})).evictions({}, 0);
      const told = found.evictions.filter((eviction) => isEvicted(eviction) === "evicted");
      const { evicted } = await recordsOfNode();
      expect(told.map(({ uid }) => uid).sort()).toEqual([...evicted].sort());
    });
    const keys = distinct.filter(isCompared).map(keyOf);
    expect(keys.sort()).toEqual([...new Set(keys)].sort());
  });
});
