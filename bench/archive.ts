import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { OtelCollector } from "../test/e2e/support/otel-collector.ts";
import { missingParts } from "../test/e2e/support/parts.ts";
import { AcceptedRequests, CountingRelay } from "./archive-load.ts";
import { ArchiveNode } from "./archive-node.ts";
import type { Figure } from "./figures.ts";
import { cpuSecondsOf } from "./process-usage.ts";

/** Of a cluster with 5,000 nodes. */
const EVICTIONS_PER_SECOND = 10 / 60;
/** Longer than the interval of the exporters. */
const SETTLED_MS = 12_000;

export interface ArchiveOptions {
  agents: number;
  steadyMs: number;
  outageMs: number;
}

/**
 * Measures the load of a fleet's exporters on one real OpenTelemetry Collector: while each evicts a pod at a random
 * time, at rest, and when the collector returns after an outage in which each evicted a pod. Requests are those that
 * the collector accepted. Bytes are those on the wire, including HTTP headers.
 */
export async function benchArchive({ agents, steadyMs, outageMs }: ArchiveOptions): Promise<Figure[]> {
  const missing = missingParts("otelCollector");
  if (missing) throw new Error(`npm run test:e2e makes the parts that are missing: ${missing}`);
  const directory = mkdtempSync(join(tmpdir(), "nkb-archive-"));
  const collector = new OtelCollector(directory);
  await collector.start();
  const relay = new CountingRelay(Number(new URL(collector.endpoint("http")).port));
  const endpoint = await relay.start();
  const accepted = new AcceptedRequests(join(directory, "collected.jsonl"));
  const nodes: ArchiveNode[] = [];
  const evictAll = (withinMs: number) =>
    Promise.all(
      nodes.map(async (node) => {
        await systemClock.sleep(Math.random() * withinMs);
        await node.evict();
      }),
    );
  const ended = () =>
    new Set(
      collector.logs().flatMap(({ event, body }) => (event === "nodekeeper.pod.ended" ? [body.pod.uid] : [])),
    );
  const traced = () => new Set(collector.spans().map(({ traceId }) => traceId));
  try {
    for (let at = 0; at < agents; at++) {
      nodes.push(
        new ArchiveNode({
          name: `node-${at}`,
          directory: join(directory, `${at}`),
          endpoint,
          protocol: "http",
        }),
      );
      await systemClock.sleep(5_000 / agents);
    }
    await systemClock.sleep(SETTLED_MS);

    const [requests, bytes, cpu, since] = [
      accepted.total,
      relay.bytes,
      cpuSecondsOf(collector.pid!),
      Date.now(),
    ];
    await evictAll(steadyMs);
    await systemClock.sleep(SETTLED_MS);
    const seconds = (Date.now() - since) / 1_000;
    const perEviction = {
      requests: (accepted.total - requests) / agents,
      bytes: (relay.bytes - bytes) / agents,
    };
    const steadyCpu = (cpuSecondsOf(collector.pid!) - cpu) / seconds;
    const busiest = accepted.busiest(since);

    const restRequests = accepted.total;
    await systemClock.sleep(SETTLED_MS);
    const atRest = accepted.total - restRequests;

    await collector.kill();
    const outageSince = Date.now();
    await evictAll(outageMs / 2);
    await systemClock.sleep(Math.max(outageMs - (Date.now() - outageSince), 0));
    await collector.start();
    const returnedAt = Date.now();
    const before = accepted.total;
    await until("all records and traces", () => ended().size === 2 * agents && traced().size === 2 * agents, {
      explain: () => `${ended().size} ends, ${traced().size} traces`,
    });
    const name = `${agents} agents`;
    return [
      { name: `${name}: requests of an eviction`, value: perEviction.requests, unit: "" },
      { name: `${name}: kB of an eviction`, value: perEviction.bytes / 1_000, unit: "kB" },
      {
        name: `${name}, ${(agents * 60_000) / steadyMs} evictions a minute: requests in the busiest second`,
        value: busiest,
        unit: "",
      },
      {
        name: `${name}, ${(agents * 60_000) / steadyMs} evictions a minute: CPU of the collector`,
        value: steadyCpu * 100,
        unit: "% of one",
      },
      {
        name: "5,000 nodes, 10 evictions a minute: requests",
        value: perEviction.requests * EVICTIONS_PER_SECOND,
        unit: "/s",
      },
      {
        name: "5,000 nodes, 10 evictions a minute: bytes",
        value: (perEviction.bytes * EVICTIONS_PER_SECOND) / 1_000,
        unit: "kB/s",
      },
      { name: `${name} at rest: requests`, value: atRest, unit: "" },
      {
        name: `return after ${outageMs / 1_000} s: requests in the busiest second`,
        value: accepted.busiest(returnedAt),
        unit: "",
      },
      { name: `return after ${outageMs / 1_000} s: requests`, value: accepted.total - before, unit: "" },
      {
        name: `return after ${outageMs / 1_000} s: until all is there`,
        value: (Date.now() - returnedAt) / 1_000,
        unit: "s",
      },
    ];
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
    accepted.stop();
    relay.stop();
    await collector.kill();
    rmSync(directory, { recursive: true });
  }
}
