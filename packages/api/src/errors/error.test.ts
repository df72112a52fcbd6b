import { describe, expect, it } from "vitest";
import { codeOf, errorIdOf, messageOf, messageWithId, NodekeeperError, toError } from "./error.ts";

describe("errors", () => {
  it("keep code, cause and the wait asked for", () => {
    const cause = new Error("socket closed");
    const error = new NodekeeperError("throttled", "later", { cause, retryAfterMs: 5_000 });
    expect(error).toMatchObject({ name: "NodekeeperError", code: "throttled", cause, retryAfterMs: 5_000 });
    expect("cause" in new NodekeeperError("internal", "x")).toBe(false);
  });

  it.each([
    [new NodekeeperError("expired", "x"), "expired"],
    [new DOMException("x", "AbortError"), "stopped"],
    [AbortSignal.abort().reason, "stopped"],
    [new TypeError("x"), "internal"],
    ["text", "internal"],
    [undefined, "internal"],
  ])("have a code: %s is %s", (error, code) => {
    expect(codeOf(error)).toBe(code);
  });

  it("have the id that they are given, or that of their causes", () => {
    const cause = new NodekeeperError("unavailable", "x", { id: "NK1204" });
    expect(errorIdOf(cause)).toBe("NK1204");
    expect(errorIdOf(new Error("y", { cause: new Error("z", { cause }) }))).toBe("NK1204");
    expect(new NodekeeperError("internal", "y", { cause }).id).toBe("NK1204");
    expect(new NodekeeperError("internal", "y", { id: "NK1602", cause }).id).toBe("NK1602");
    expect(messageWithId(new NodekeeperError("internal", "y", { cause }))).toBe("NK1204: y: x");
    expect(messageWithId(new Error("y"))).toBe("y");
    for (const error of [new NodekeeperError("expired", "x"), new Error("x"), "NK1204", undefined])
      expect(errorIdOf(error)).toBeUndefined();
  });

  it("show themselves and their causes in one line, nothing twice", () => {
    const root = new Error("ECONNREFUSED");
    const middle = new Error("dialling /run/x.sock", { cause: root });
    expect(messageOf(new NodekeeperError("unavailable", "plugin gpu", { cause: middle }))).toBe(
      "plugin gpu: dialling /run/x.sock: ECONNREFUSED",
    );
    expect(messageOf(new Error("failed: ECONNREFUSED", { cause: root }))).toBe("failed: ECONNREFUSED");
    expect(messageOf(new TypeError())).toBe("TypeError");
    expect(messageOf("text")).toBe("text");
    expect(messageOf(undefined)).toBe("undefined");
  });

  it("are made of anything thrown", () => {
    const error = new Error("x");
    expect(toError(error)).toBe(error);
    expect(toError("text").message).toBe("text");
  });
});
