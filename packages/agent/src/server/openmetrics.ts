/** The Prometheus text format, which every scraper supports. */
export const TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8";
/** OpenMetrics 1.0: prometheus.io/docs/specs/om/open_metrics_spec. */
export const OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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
