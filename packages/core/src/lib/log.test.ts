import { NodekeeperError } from "@nodekeeper/api/errors";
import { describe, expect, it } from "vitest";
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
    expect(Object.keys(line!).sort()).toEqual(["level", "msg", "plugin", "pod", "ts", "v"]);
    const pod = { name: "a", namespace: "b" };
    expect(line).toMatchObject({ level: "warn", v: 0, msg: "x", plugin: "gpu", pod });
    expect(Math.abs(Date.now() - (line!.ts as number))).toBeLessThan(3_600_000);
  });

  it("has the verbosity of klog, which errors do not have", () => {
    const lines = logged("debug", (log) => {
      log.debug("x");
      log.info("x");
      log.error("x");
    });
    expect(lines.map(({ v }) => v)).toEqual([4, 0, undefined]);
  });

  it("writes errors with code and cause, without stacks", () => {
    const error = new NodekeeperError("deadline", "asking gpu", { cause: new Error("silence") });
    const [line] = logged("info", (log) => log.error({ err: error }, "x"));
    expect(line).toMatchObject({ err: "asking gpu: silence", errCode: "deadline" });
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
