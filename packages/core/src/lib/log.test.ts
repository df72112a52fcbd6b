import { describe, expect, it } from "vitest";
import { NodekeeperError } from "./errors.ts";
import { createLogger, type LogLevel } from "./log.ts";

describe("log", () => {
  function logged(
    level: LogLevel,
    write: (log: ReturnType<typeof createLogger>) => void,
  ): Record<string, unknown>[] {
    const lines: string[] = [];
    write(createLogger(level, { write: (line) => void lines.push(line) }));
    return lines.map((line) => JSON.parse(line));
  }

  it("has the keys that operators expect", () => {
    const [line] = logged("info", (log) =>
      log.child({ plugin: "gpu" }).warn({ pod: { name: "a", namespace: "b" } }, "x"),
    );
    expect(Object.keys(line!).sort()).toEqual(["msg", "plugin", "pod", "ts", "v"]);
    expect(line).toMatchObject({ v: "warn", msg: "x", plugin: "gpu", pod: { name: "a", namespace: "b" } });
    expect(new Date(line!.ts as string).toISOString()).toBe(line!.ts);
  });

  it("writes errors with code and cause, without stacks", () => {
    const error = new NodekeeperError("deadline", "asking gpu", { cause: new Error("silence") });
    const [line] = logged("info", (log) => log.error({ err: error }, "x"));
    expect(line!.err).toEqual({ message: "asking gpu", code: "deadline", cause: { message: "silence" } });
    const [text] = logged("info", (log) => log.error({ err: "just text" }, "x"));
    expect(text!.err).toBe("just text");
  });

  it("has the id of an error that an operator can act on, or the one given", () => {
    const cause = new NodekeeperError("unavailable", "dial", { id: "NK1204" });
    const [ofCause, given, none] = logged("info", (log) => {
      log.warn({ err: new Error("asking", { cause }) }, "x");
      log.warn({ err: cause, errorId: "NK1602" }, "x");
      log.warn({ err: new Error("x") }, "x");
    });
    expect(ofCause).toMatchObject({ errorId: "NK1204" });
    expect(given).toMatchObject({ errorId: "NK1602" });
    expect(none).not.toHaveProperty("errorId");
  });

  it("leaves out what is below its level", () => {
    expect(logged("warn", (log) => log.info("x"))).toEqual([]);
    expect(logged("silent", (log) => log.error("x"))).toEqual([]);
  });
});
