import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { stringify } from "yaml";
import { freePort } from "./free-port.ts";
import { pathOf } from "./parts.ts";

/** A log record as the collector wrote it. */
export interface WrittenLog {
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every event
  body: any;
  attributes: Record<string, string>;
  resource: Record<string, string>;
  traceId: string;
}

/** A span as the collector wrote it. */
export interface WrittenSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
}

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: string };
}

/** Files of a certificate for the collector. */
export interface ServingFiles {
  cert: string;
  key: string;
}

/** A real OpenTelemetry Collector, which appends what it accepts to a file. It can be killed and started again. */
export class OtelCollector {
  readonly #directory: string;
  readonly #tls: ServingFiles | undefined;
  readonly #stores: readonly string[];
  #ports: { http: number; grpc: number } | undefined;
  #process: ChildProcess | undefined;
  #output = "";

  /** @param stores URLs of OTLP over HTTP that logs are sent to as well: a request is accepted once all have it */
  constructor(directory: string, tls?: ServingFiles, stores: readonly string[] = []) {
    this.#directory = directory;
    this.#tls = tls;
    this.#stores = stores;
  }

  /** Undefined while it is not running. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** What it wrote to its log. */
  get output(): string {
    return this.#output;
  }

  endpoint(protocol: "http" | "grpc"): string {
    return `${this.#tls ? "https" : "http"}://localhost:${this.#ports![protocol]}`;
  }

  /** Starts it, on the same ports as before, and waits until it is ready. */
  async start(): Promise<void> {
    this.#ports ??= { http: await freePort(), grpc: await freePort() };
    const config = join(this.#directory, "collector.yaml");
    writeFileSync(config, stringify(this.#configuration(this.#ports)));
    const child = spawn(pathOf("otelCollector"), ["--config", `file:${config}`]);
    this.#process = child;
    const from = this.#output.length;
    child.stderr.on("data", (text) => {
      this.#output += text;
    });
    const isReady = () => {
      if (child.exitCode !== null) throw new Error(`the collector exited: ${this.#output.slice(from)}`);
      return this.#output.slice(from).includes("Everything is ready");
    };
    await until("the collector", isReady, {
      explain: () => this.#output,
    });
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** The logs that it accepted, with duplicates. */
  logs(): WrittenLog[] {
    return this.#lines().flatMap(({ resourceLogs = [] }) =>
      resourceLogs.flatMap(({ resource, scopeLogs }: Line) =>
        scopeLogs.flatMap(({ logRecords }: Line) =>
          logRecords.map(({ eventName, body, attributes, traceId }: Line) => ({
            event: eventName,
            body: JSON.parse(body.stringValue),
            attributes: attributesOf(attributes),
            resource: attributesOf(resource.attributes),
            traceId,
          })),
        ),
      ),
    );
  }

  /** The spans that it accepted, with duplicates. */
  spans(): WrittenSpan[] {
    return this.#lines().flatMap(({ resourceSpans = [] }) =>
      resourceSpans.flatMap(({ scopeSpans }: Line) => scopeSpans.flatMap(({ spans }: Line) => spans)),
    );
  }

  // A kill may leave part of a line.
  #lines(): Line[] {
    const file = join(this.#directory, "collected.jsonl");
    if (!existsSync(file)) return [];
    return readFileSync(file, "utf8")
      .split("\n")
      .flatMap((line) => {
        try {
          return [JSON.parse(line)];
        } catch {
          return [];
        }
      });
  }

  #configuration({ http, grpc }: { http: number; grpc: number }) {
    const tls = this.#tls ? { tls: { cert_file: this.#tls.cert, key_file: this.#tls.key } } : {};
    const pipeline = { receivers: ["otlp"], exporters: ["lines"] };
    const stores = Object.fromEntries(
      this.#stores.map((endpoint, at) => [
        `otlp_http/${at}`,
        { endpoint, sending_queue: { enabled: false }, retry_on_failure: { enabled: false } },
      ]),
    );
    const logs = { ...pipeline, exporters: [...pipeline.exporters, ...Object.keys(stores)] };
    return {
      receivers: {
        otlp: {
          protocols: {
            http: { endpoint: `localhost:${http}`, ...tls },
            grpc: { endpoint: `localhost:${grpc}`, ...tls },
          },
        },
      },
      exporters: { lines: { path: join(this.#directory, "collected.jsonl") }, ...stores },
      service: {
        pipelines: { logs, traces: pipeline },
        telemetry: { metrics: { level: "none" } },
      },
    };
  }
}

// biome-ignore lint/suspicious/noExplicitAny: OTLP in JSON
type Line = any;

function attributesOf(attributes: readonly Attribute[]): Record<string, string> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? ""]),
  );
}
