import { type Clock, RecentWork, type Registry, withDeadline } from "@nodekeeper/core/lib";
import { HANDLER_DEADLINE_MS } from "./api.ts";
import type { Reply } from "./reply.ts";

/** Rendering all series blocks the event loop for tens of milliseconds, so it is done at most once per interval. */
const RENDER_INTERVAL_MS = 1_000;

/** The body of `/metrics`. Rendered at most once a second, regardless of the number of requests. */
export class MetricsPage {
  readonly #clock: Clock;
  // A collector that hangs blocks one rendering, not one per scrape.
  readonly #body: RecentWork<string>;

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock;
    this.#body = new RecentWork(
      clock,
      () => RENDER_INTERVAL_MS,
      () => registry.metrics(),
    );
  }

  /**
   * Returns metrics at most a second old, in the format that the `Accept` header prefers. Throws `deadline` if a
   * collector hangs.
   */
  async reply(accept: string | undefined, signal: AbortSignal): Promise<Reply> {
    const body = await withDeadline(
      this.#clock,
      { ms: HANDLER_DEADLINE_MS, name: "metrics" },
      signal,
      (scope) => this.#body.get(scope),
    );
    const headers = { Vary: "Accept" };
    if (!prefersOpenMetrics(accept)) return { status: 200, contentType: TEXT_TYPE, body, headers };
    return { status: 200, contentType: OPENMETRICS_TYPE, body: toOpenMetrics(body), headers };
  }
}

/** The Prometheus text format, which every scraper supports. */
const TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8";
/** OpenMetrics 1.0: prometheus.io/docs/specs/om/open_metrics_spec. */
const OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/**
 * Whether an `Accept` header prefers OpenMetrics 1.0 to the Prometheus text format (RFC 9110, 12.5.1). The text format
 * is preferred if both are equal or the header is absent.
 */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  let openMetrics = 0;
  let text = 0;
  for (const range of (accept ?? "*/*").split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const values = new Map(parameters.map((each) => each.split("=", 2) as [string, string | undefined]));
    const quality = Number(values.get("q") ?? 1) || 0;
    const version = values.get("version") ?? "1.0.0";
    if (type === "application/openmetrics-text" && version === "1.0.0")
      openMetrics = Math.max(openMetrics, quality);
    if (type === "text/plain" || type === "text/*" || type === "*/*") text = Math.max(text, quality);
  }
  return openMetrics > text;
}

/**
 * Converts the Prometheus text format to OpenMetrics. They differ in counter names (`_total` only on samples), integer
 * values of `le`, escaped quotes in help texts, and the trailing `# EOF`.
 */
export function toOpenMetrics(text: string): string {
  const lines = text.split("\n").filter((line) => line !== "");
  const counters = new Set(lines.flatMap((line) => /^# TYPE (\S+)_total counter$/.exec(line)?.[1] ?? []));
  return `${lines.map((line) => convertLine(line, counters)).join("\n")}\n# EOF\n`;
}

function convertLine(line: string, counters: ReadonlySet<string>): string {
  const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
  if (!keyword) return line.replace(/([{,]le=")(\d+)"/, '$1$2.0"');
  const family = name.replace(/_total$/, "");
  const value = keyword === "HELP" ? rest.replaceAll('"', '\\"') : rest;
  return `# ${keyword} ${counters.has(family) ? family : name} ${value}`;
}
