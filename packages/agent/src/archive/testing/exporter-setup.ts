import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ExportLogsServiceRequest } from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import { createLogger, FakeClock, Registry, stopped } from "@nodekeeper/core/lib";
import { ArchiveStore, EvictionStore, StateDatabase } from "../../state/index.ts";
import { ArchiveExporter } from "../exporter.ts";
import { createArchiveMetrics } from "../metrics.ts";
import type { Delivery, OtlpRequest, Transport } from "../otlp/delivery.ts";
import { type ArchiveSources, RecordBuilder } from "../records/record-builder.ts";

/** A transport that a test decides for. */
export class ScriptedTransport implements Transport {
  /** Messages of the records of each request. Those of traces are empty. */
  readonly requests: { signal: string; messages: string[]; ids: string[] }[] = [];
  isDisposed = false;
  /** Assign to change it. */
  answer: (request: { messages: string[]; signal: string }) => Delivery | Promise<Delivery> = () => accepted;

  async send({ signal, body }: OtlpRequest): Promise<Delivery> {
    const logs = signal === "logs" ? ExportLogsServiceRequest.decode(body).resourceLogs : [];
    const records = logs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords));
    const textOf = (name: string) =>
      records.map(({ attributes }) => attributes.find(({ key }) => key === name)?.value?.stringValue ?? "");
    const request = { signal, messages: textOf("nodekeeper.message"), ids: textOf("nodekeeper.record.id") };
    this.requests.push(request);
    return await this.answer(request);
  }

  [Symbol.dispose](): void {
    this.isDisposed = true;
  }
}

export const accepted: Delivery = { kind: "accepted", rejected: 0, message: "" };

/** An exporter with a real state database. */
export function exporterSetup(settings: Partial<{ maxBatchSize: number; maxQueued: number }> = {}) {
  const directory = mkdtempSync(join(tmpdir(), "nkx-"));
  const clock = new FakeClock();
  // biome-ignore lint/suspicious/noExplicitAny: log lines have any fields
  const logLines: any[] = [];
  const log = createLogger("info", { write: (line: string) => logLines.push(JSON.parse(line)) });
  const database = StateDatabase.open({ directory, clock, log });
  const store = new ArchiveStore(database, clock, "node-a");
  const evictions = new EvictionStore(database);
  const registry = new Registry();
  const sources: ArchiveSources = {
    round: () => undefined,
    selection: () => undefined,
    pod: () => undefined,
    events: () => [],
    steps: (uid) => evictions.steps(uid),
    podOfUid: () => undefined,
  };
  const transport = new ScriptedTransport();
  const exporter = new ArchiveExporter({
    store,
    builder: new RecordBuilder(sources, true),
    transport,
    origin: async () => ({ version: "1", resource: { attributes: [] } }),
    settings: { interval: 5_000, timeout: 10_000, maxBatchSize: 512 * 1024, maxQueued: 20_000, ...settings },
    metrics: createArchiveMetrics(registry, {
      queuedRecords: () => 0,
      queuedTraces: () => 0,
      lagSeconds: () => 0,
    }),
    clock,
    log,
  });
  const controller = new AbortController();
  let running: Promise<void> | undefined;
  return {
    ...{ clock, store, database, sources, transport, exporter, logLines, registry },
    addStep(message: string) {
      const step = { uid: "u1", at: Math.floor(clock.now()), message };
      evictions.save({ state: "{}", steps: [step] }, { maxAgeMs: 1e12, maxBytes: 1e9 });
    },
    addRound(id: number) {
      const round = {
        id,
        at: Math.floor(clock.now()),
        base: new Uint8Array([1]),
        body: new Uint8Array([2]),
        pods: [],
      };
      evictions.save(
        { state: "{}", steps: [], round: { ...round, consequence: "effect", plugins: ["p"] } },
        { maxAgeMs: 1e12, maxBytes: 1e9 },
      );
    },
    /** Starts the exporter. */
    run() {
      running = exporter.run(controller.signal);
    },
    /** Stops the exporter, at once or as the clock goes on. */
    async stop() {
      controller.abort(stopped("test is over"));
      await running;
    },
    async metric(name: string) {
      const found = (await registry.getMetricsAsJSON()).find(
        (one) => one.name === `nodekeeper_archive_${name}`,
      );
      return Object.fromEntries(
        found!.values.map(({ labels, value }) => [Object.values(labels).join(), value]),
      );
    },
    async close() {
      await this.stop();
      database.close();
      rmSync(directory, { recursive: true });
    },
  };
}
