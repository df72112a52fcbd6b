import { describe, expect, it } from "vitest";
import { declareError } from "./declare.ts";
import { codeOf, errorIdOf, messageOf, messageWithId, NodekeeperError } from "./error.ts";

const texts = { title: "The disk is full", cause: "Many logs.", remedy: "Remove some." };
const DiskFull = declareError({
  id: "NK1001",
  code: "exhausted",
  message: "{path}: {used} of {size} bytes are used",
  ...texts,
});

describe("a declared error", () => {
  it("fills its message, with values that look like parameters as they are", () => {
    const error = new DiskFull({ path: "/{size}/$&", used: 0, size: 7 });
    expect(error).toBeInstanceOf(NodekeeperError);
    expect(error).toBeInstanceOf(DiskFull);
    expect(messageOf(error)).toBe("/{size}/$&: 0 of 7 bytes are used");
    expect(error).toMatchObject({ name: "NodekeeperError", code: "exhausted", id: "NK1001" });
    expect(error.cause).toBeUndefined();
  });

  it("has the cause, delay and code that the throw site states, and its own id", () => {
    const cause = new NodekeeperError("unavailable", "write", { id: "NK1105" });
    const details = { cause, code: "throttled", retryAfterMs: 5 } as const;
    const error = new DiskFull({ path: "/", used: 1, size: 1 }, details);
    expect(error).toMatchObject({ cause, retryAfterMs: 5 });
    expect(codeOf(error)).toBe("throttled");
    expect(errorIdOf(new Error("round", { cause: error }))).toBe("NK1001");
    expect(messageWithId(error)).toBe("NK1001: /: 1 of 1 bytes are used: write");
  });

  it("requires the parameters of its message", () => {
    // @ts-expect-error `size` is missing.
    expect(new DiskFull({ path: "/", used: 1 }).message).toContain("undefined");
    // @ts-expect-error `free` is not a parameter.
    new DiskFull({ path: "/", used: 1, size: 1, free: 0 });
  });

  it("has the texts for operators", () => {
    expect({ ...DiskFull }).toMatchObject({ id: "NK1001", code: "exhausted", ...texts });
  });
});
