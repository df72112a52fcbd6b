import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ApiObject } from "./admin-client.ts";
import { Child } from "./child.ts";
import { freePort } from "./free-port.ts";
import { pathOf } from "./parts.ts";

/** A real VictoriaLogs, which can be killed and started again with what it has on disk. */
export class VictoriaLogsServer {
  readonly child: Child;
  readonly url: string;

  private constructor(child: Child, url: string) {
    this.child = child;
    this.url = url;
  }

  /** @param directory of its own */
  static async start(
    directory: string,
    flags: Readonly<Record<string, string>> = {},
  ): Promise<VictoriaLogsServer> {
    mkdirSync(directory, { recursive: true });
    const port = await freePort();
    const all = {
      httpListenAddr: `127.0.0.1:${port}`,
      storageDataPath: join(directory, "data"),
      // Records of any time are kept.
      retentionPeriod: "100y",
      ...flags,
    };
    const child = new Child({
      name: "VictoriaLogs",
      command: pathOf("victoriaLogs"),
      args: Object.entries(all).map(([name, value]) => `-${name}=${value}`),
      logFile: join(directory, "victoria-logs.log"),
    });
    const server = new VictoriaLogsServer(child, `http://127.0.0.1:${port}`);
    await server.restart();
    return server;
  }

  /** The value of `archive.endpoint` for agents that export to it. */
  get endpoint(): string {
    return `${this.url}/insert/opentelemetry`;
  }

  /** Starts it, on the same port as before, and waits until it is ready. */
  async restart(): Promise<void> {
    this.child.start();
    await this.child.until("ready", async () => {
      const { ok } = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(10_000) });
      if (!ok) throw new Error("not ready");
    });
  }

  /** Waits until all that it has accepted so far is on its disk. */
  async flushed(): Promise<void> {
    await fetch(`${this.url}/internal/force_flush`, { signal: AbortSignal.timeout(60_000) });
    const accepted = await this.#storedRows(/inmemory|small|big/);
    await this.child.until("flushed", async () => {
      if ((await this.#storedRows(/small|big/)) < accepted) throw new Error("rows are in memory");
    });
  }

  async #storedRows(types: RegExp): Promise<number> {
    const response = await fetch(`${this.url}/metrics`, { signal: AbortSignal.timeout(60_000) });
    const rows = (await response.text()).matchAll(/^vl_storage_rows\{type="storage\/(\w+)"\} (\d+)$/gm);
    return [...rows].reduce((sum, [, type, count]) => (types.test(type!) ? sum + Number(count) : sum), 0);
  }

  /** Returns the rows of a query. */
  async query(query: string): Promise<Record<string, string>[]> {
    const text = await this.#ask("query", { query });
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
  }

  /** Returns what the API for statistics answers, in Prometheus's format. */
  async stats(
    path: "stats_query" | "stats_query_range",
    parameters: Record<string, string>,
  ): Promise<ApiObject> {
    return JSON.parse(await this.#ask(path, parameters));
  }

  async #ask(path: string, parameters: Record<string, string>): Promise<string> {
    const response = await fetch(`${this.url}/select/logsql/${path}`, {
      method: "POST",
      body: new URLSearchParams(parameters),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${parameters.query}: HTTP ${response.status}: ${text}`);
    return text;
  }
}
