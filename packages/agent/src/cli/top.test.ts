import { describe, expect, it } from "vitest";
import type { AgentConnection } from "./agent-connection.ts";
import { topCommand } from "./top.ts";

const reading = (given: object) => ({
  ...{
    plugin: "p",
    scope: "memory",
    observed: 50,
    threshold: 100,
    operator: "greaterThan",
    met: "none",
    ...given,
  },
});

const NOW = 600_000;

/** What `top` prints of the last round, `at` then. */
async function top(
  readings: object[] | undefined,
  format: "table" | "json" = "table",
  at = NOW - 5_000,
): Promise<string> {
  let out = "";
  const write = (text: string) => {
    out += text;
  };
  const rounds = readings ? [{ at, readings }] : [];
  const agent = { get: async () => ({ rounds }), [Symbol.dispose]: () => {} } as unknown as AgentConnection;
  await topCommand(agent, format, { write, isTerminal: false, columns: 80 }, NOW);
  return out;
}

describe("top", () => {
  it("has a row for each reading, the closest to its threshold first", async () => {
    const rows = (
      await top([
        reading({ plugin: "far", observed: 10 }),
        reading({
          plugin: "low",
          operator: "lessThan",
          observed: 2 ** 30,
          threshold: 2 ** 29,
          unit: "bytes",
        }),
        reading({ plugin: "met", observed: 120, met: "hard", unit: "%" }),
        reading({ plugin: "silent", observed: null, threshold: null, scope: "" }),
      ])
    )
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(rows).toEqual([
      ["PLUGIN", "SIGNAL", "OBSERVED", "THRESHOLD", "SHARE", "MET"],
      ["met", "memory", "120%", "> 100%", "120%", "hard"],
      ["low", "memory", "1Gi", "< 512Mi", "50%", "-"],
      ["far", "memory", "10", "> 100", "10%", "-"],
      ["silent", "-", "unknown", "-", "-", "-"],
    ]);
  });

  it("reports that there was no round", async () => {
    expect(await top(undefined)).toBe("No eviction round since 1970-01-01T00:05:00.000Z.\n");
    expect(await top(undefined, "json")).toBe("null\n");
  });

  it("reports that a round has no reading: its plugins may not have answered", async () => {
    expect(await top([])).toBe("No eviction plugin reported a reading in the last round.\n");
  });

  it("names the round if it is old", async () => {
    expect(await top([reading({})], "table", NOW - 31_000)).toMatch(
      /^Round at 1970-01-01T00:09:29.000Z\nPLUGIN/,
    );
    expect(await top([reading({})])).toMatch(/^PLUGIN/);
  });
});
