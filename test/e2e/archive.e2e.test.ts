import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { hasOpenssl, makeAuthority } from "../../packages/core/src/kube/testing/certificates.ts";
import { agentFlags } from "../support/agent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "../support/eviction-plugin.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";
import { OtelCollector, type WrittenLog } from "./support/otel-collector.ts";
import { missingParts } from "./support/parts.ts";

const missing = missingParts("otelCollector") ?? (hasOpenssl ? undefined : "openssl");
const LIVES = 6;
// Results of outcomes after which a pod is gone.
const ends = new Set(["terminated", "superseded", "unknown"]);

describe.skipIf(missing)("records in a real OpenTelemetry Collector", () => {
  let cluster: TestCluster;
  let collector: OtelCollector;
  let agent: ScriptProcess;
  let plugin: TestEvictionPlugin;

  afterEach(async () => {
    agent.kill("SIGKILL");
    await agent.ended;
    await plugin.stop();
    await collector.kill();
    await cluster.stop();
  });

  const explain = () => `${agent.output().slice(-3_000)}\n${collector.output.slice(-3_000)}`;

  /** Starts the collector, with a certificate if its authority is to be checked. Returns the settings of the archive. */
  async function startCollector(
    protocol: "http" | "grpc",
    isSecure: boolean,
  ): Promise<Record<string, string>> {
    const { directory } = cluster;
    const common = { archiveProtocol: protocol, archiveInterval: "100ms" };
    if (!isSecure) {
      collector = new OtelCollector(directory);
      await collector.start();
      return { ...common, archiveEndpoint: collector.endpoint(protocol) };
    }
    const authority = makeAuthority(directory, "authority");
    const pair = authority.issue("localhost", "DNS:localhost");
    const file = (name: string, text: string) => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    collector = new OtelCollector(directory, {
      cert: file("serving.crt", pair.cert),
      key: file("serving.key", pair.key),
    });
    await collector.start();
    const archiveCaFile = file("ca.crt", authority.ca);
    return { ...common, archiveCaFile, archiveEndpoint: collector.endpoint(protocol) };
  }

  async function startAgent(flags: Record<string, string>): Promise<void> {
    const all = { ...agentFlags(cluster), ...flags };
    mkdirSync(all.pluginDirectories!, { recursive: true });
    agent = startScript("packages/agent/src/main.ts", ["run", ...argumentsOf(all)]);
    plugin = await startEvictionPlugin(all.pluginDirectories!, "pressure");
    await until("registration", () => plugin.registered === true, { explain });
  }

  /** Evicts a pod and deletes another. Returns their UIDs. */
  async function change(life: number): Promise<string[]> {
    const uids = [cluster.addPod(`evicted-${life}`), cluster.addPod(`deleted-${life}`)];
    plugin.top = pick([`evicted-${life}`]);
    plugin.threshold = { ...hardPressure };
    await until("the eviction", () => cluster.evictions().includes(`evicted-${life}`), { explain });
    plugin.threshold = {};
    cluster.server.store.delete("pods", `deleted-${life}`, "default");
    return uids;
  }

  it.each([
    ["http", false],
    ["grpc", false],
    ["http", true],
    ["grpc", true],
  ] as const)(
    "are there exactly once, over %s (TLS: %s), although agent and collector are killed",
    async (protocol, isSecure) => {
      cluster = await startCluster();
      const flags = await startCollector(protocol, isSecure);
      const expected: string[] = [];
      const evicted: string[] = [];
      for (let life = 0; life < LIVES; life++) {
        await startAgent(flags);
        if (life % 3 === 1) await collector.kill();
        const uids = await change(life);
        expected.push(...uids);
        evicted.push(uids[0]!);
        if (life % 3 === 2) await collector.start().catch(() => {});
        // At any point of what follows from the changes.
        await new Promise((resolve) => setTimeout(resolve, life * 97));
        agent.kill("SIGKILL");
        await agent.ended;
        await plugin.stop();
      }
      await startAgent(flags);
      const distinct = () => [
        ...new Map(collector.logs().map((log) => [log.attributes["nodekeeper.record.id"], log])).values(),
      ];
      const endedOf = () => distinct().filter(({ event }) => event === "nodekeeper.pod.ended");
      const uidOf = ({ attributes }: { attributes: Record<string, string> }) => attributes["k8s.pod.uid"]!;
      await until("the end of each pod", () => new Set(endedOf().map(uidOf)).size === expected.length, {
        explain,
      });
      const outcomes = () => distinct().filter(({ body }) => body.outcome);
      const hasOutcome = (uid: string) =>
        outcomes().some(({ body: { outcome } }) => outcome.uid === uid && ends.has(outcome.result));
      await until("the outcome of each eviction", () => evicted.every(hasOutcome), { explain });
      // They are sent after the logs, in requests of their own.
      const traceOf = (traceId: string) => collector.spans().filter((span) => span.traceId === traceId);
      const terminated = outcomes().filter(({ body }) => body.outcome.result === "terminated");
      const hasTrace = ({ traceId }: WrittenLog) => traceOf(traceId).length > 0;
      await until("the trace of each eviction", () => terminated.every(hasTrace), {
        explain: () => `${JSON.stringify(terminated.filter((log) => !hasTrace(log)))}\n${explain()}`,
      });
      expect(endedOf().map(uidOf).sort()).toEqual(expected.sort());
      const sequences = new Set(
        distinct().map(({ attributes }) => Number(attributes["nodekeeper.record.sequence"])),
      );
      expect([...sequences].sort((a, b) => a - b)).toEqual([...sequences].map((_, at) => at + 1));
      for (const { resource } of distinct())
        expect(resource).toMatchObject({ "service.name": "nodekeeper", "k8s.node.name": "worker-1" });
      // Each trace is complete, and the decisions about the pod name it.
      const selected = distinct().filter(({ body }) => body.victim);
      for (const { traceId } of terminated) {
        const spans = traceOf(traceId);
        expect(spans.map(({ name }) => name)).toContain("evict pod");
        const [root] = spans.filter(({ parentSpanId = "" }) => parentSpanId === "");
        expect(spans.every(({ parentSpanId }) => !parentSpanId || parentSpanId === root!.spanId)).toBe(true);
        expect(selected.map((log) => log.traceId)).toContain(traceId);
      }
    },
  );
});
