import { metricTable, Registry } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { prefersOpenMetrics, toOpenMetrics } from "./metrics-page.ts";

describe("OpenMetrics is served", () => {
  it.each<[string, string | undefined, boolean]>([
    [
      "to Prometheus 3",
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
      true,
    ],
    ["where nothing else is asked for", "application/openmetrics-text", true],
    [
      "not to a scraper that prefers text",
      "text/plain;version=0.0.4,application/openmetrics-text;q=0.5",
      false,
    ],
    ["not in a version that differs", "application/openmetrics-text;version=0.0.1,text/plain;q=0.5", false],
    ["not to a browser", "text/html,*/*;q=0.8", false],
    ["not to curl", "*/*", false],
    ["not without the header", undefined, false],
    ["not where it is refused", "application/openmetrics-text;q=0", false],
  ])("%s", (_, accept, expected) => {
    expect(prefersOpenMetrics(accept)).toBe(expected);
  });
});

it("names counters without _total, has canonical bucket bounds, escapes help, and ends", async () => {
  const registry = new Registry();
  const { counter, gauge, histogram } = metricTable(registry, "");
  counter("calls_total", 'Calls, "good" ones.', ["le"]).inc({ le: "x" });
  gauge("size", "Size.").set(2);
  const took = histogram("took", "Time.", [0.5, 10], ["of"]);
  took.observe({ of: "a" }, 1);
  expect(toOpenMetrics(await registry.metrics())).toBe(`# HELP calls Calls, \\"good\\" ones.
# TYPE calls counter
calls_total{le="x"} 1
# HELP size Size.
# TYPE size gauge
size 2
# HELP took Time.
# TYPE took histogram
took_bucket{le="0.5",of="a"} 0
took_bucket{le="10.0",of="a"} 1
took_bucket{le="+Inf",of="a"} 1
took_sum{of="a"} 1
took_count{of="a"} 1
# EOF
`);
});
