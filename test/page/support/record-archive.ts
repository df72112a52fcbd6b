// Records test/page/fixtures/archive.json: what two agents of development clusters export, as a real VictoriaLogs returns it,
// and a trace. `node test/e2e/prepare.ts && node test/page/support/record-archive.ts`
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import {
  ExportTraceServiceRequest,
  ExportTraceServiceResponse,
} from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import { until } from "@nodekeeper/testing/until";
import { VictoriaLogsServer } from "../../e2e/support/victoria-logs.ts";
import { startScript } from "../../support/processes.ts";
import { type ArchiveFixture, archiveFixture, type RecordedSpan } from "./recorded-archive.ts";

const NODES = ["worker-041", "worker-112"];
const EVICTIONS = 3;

const directory = mkdtempSync(join(tmpdir(), "nk-record-"));
const store = await VictoriaLogsServer.start(directory);
const spans: RecordedSpan[] = [];
// Takes traces as a collector does, and passes the logs on.
const collector = createServer((request, response) => {
  void bodyOf(request).then(async (body) => {
    if (request.url === "/v1/logs") {
      const { "content-type": type = "", "content-encoding": encoding } = request.headers;
      const headers = { "Content-Type": type, ...(encoding ? { "Content-Encoding": encoding } : {}) };
      const { status } = await fetch(`${store.endpoint}/v1/logs`, { method: "POST", headers, body });
      return response.writeHead(status).end();
    }
    const plain = request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
    spans.push(...spansIn(ExportTraceServiceRequest.decode(plain)));
    response.writeHead(200, { "Content-Type": "application/x-protobuf" });
    response.end(ExportTraceServiceResponse.encode(ExportTraceServiceResponse.fromPartial({})).finish());
  });
});
await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;

await Promise.all(NODES.map(record));
await store.flushed();
const rows = await store.query("*");
const timeOf = ({ _time }: Record<string, string>) => Date.parse(_time!);
rows.sort((a, b) => timeOf(a) - timeOf(b));
for (const row of rows) for (const name of ["_stream", "_stream_id"]) delete row[name];
const fixture: ArchiveFixture = { at: Math.max(...rows.map(timeOf)), rows, spans };
writeFileSync(archiveFixture, `${JSON.stringify(fixture, undefined, 1)}\n`);
collector.closeAllConnections();
collector.close();
await store.child.stop();
rmSync(directory, { recursive: true });

/** Runs a cluster with one node until some of its pods were evicted. */
async function record(node: string): Promise<void> {
  const cluster = startScript("packages/agent/src/main.ts", [
    ...["dev", "--no-agent", "--node-name", node],
    ...["--data-dir", join(directory, node)],
  ]);
  const flags = await until("the agent's flags", () => / run (--node-name .*)/.exec(cluster.output())?.[1], {
    explain: cluster.output,
  });
  const agent = startScript("packages/agent/src/main.ts", [
    ...["run", ...flags.split(" "), "--server-address", "127.0.0.1:0", "--eviction-cooldown", "0s"],
    ...["--eviction-limits-per-node", "0", "--eviction-limits-per-owner", "0"],
    ...["--eviction-in-tree-plugins", "-rss-overuse-eviction-plugin"],
    ...["--archive-endpoint", endpoint, "--archive-interval", "100ms"],
    ...["--archive-attributes", "k8s.cluster.name=prod"],
    ...["--eviction-condition-transition-period", "2s"],
  ]);
  const ended = async () => {
    const found = await store.query(`"k8s.node.name":="${node}" event_name:="nodekeeper.pod.ended"`);
    return found.filter((row) => row._msg!.includes("EvictionByEvictionAPI")).length;
  };
  await until(`${EVICTIONS} evictions on ${node}`, async () => (await ended()) >= EVICTIONS, {
    explain: agent.output,
  });
  for (const process of [agent, cluster]) {
    process.kill("SIGINT");
    await process.ended;
  }
}

function spansIn({ resourceSpans }: ExportTraceServiceRequest): RecordedSpan[] {
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
    .map(({ traceId, name, startTimeUnixNano, endTimeUnixNano, attributes, events }) => ({
      trace: Buffer.from(traceId).toString("hex"),
      name,
      from: millis(startTimeUnixNano),
      to: millis(endTimeUnixNano),
      attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, value?.stringValue ?? ""])),
      events: events.map((event) => ({ at: millis(event.timeUnixNano), name: event.name })),
    }));
}

function millis(nanos: unknown): number {
  return Number(BigInt(String(nanos)) / 1_000_000n);
}

async function bodyOf(request: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
