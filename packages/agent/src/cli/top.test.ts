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

async function top(readings: object[], format: "table" | "json" = "table"): Promise<string> {
  let out = "";
  const write = (text: string) => {
    out += text;
  };
  const rounds = readings.length > 0 ? [{ at: 1, readings }] : [];
  const agent = { get: async () => ({ rounds }), [Symbol.dispose]: () => {} } as unknown as AgentConnection;
  await topCommand(agent, format, { write, isTerminal: false, columns: 80 }, 600_000);
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
    expect(await top([])).toBe("No eviction round since 1970-01-01T00:05:00.000Z.\n");
    expect(await top([], "json")).toBe("null\n");
  });
});
