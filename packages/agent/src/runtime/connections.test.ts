import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { CriRuntime } from "./cri-runtime.ts";
import { CriServer } from "./testing/cri-server.ts";

const { signal } = new AbortController();
const version = () => ({ version: "0.1.0", runtimeName: "x", runtimeVersion: "1", runtimeApiVersion: "v1" });

function runtimeAmong(candidates: readonly string[]) {
  return new CriRuntime({
    endpoint: "",
    candidates,
    clock: systemClock,
    log: silentLogger,
    registry: new Registry(),
  });
}

describe("a runtime without a configured endpoint", () => {
  it("is the first on whose socket a process listens, and is kept to", async () => {
    await using first = await CriServer.serve({ version });
    await using second = await CriServer.serve({ version: () => ({ ...version(), runtimeName: "y" }) });
    using runtime = runtimeAmong(["/nonexistent.sock", first.path, second.path]);
    expect(await runtime.version(signal)).toMatchObject({ runtimeName: "x" });
    first.kill();
    await expect(runtime.version(signal)).rejects.toMatchObject({ code: "unavailable", id: "NK1403" });
  });

  it("is looked for again while there is none, with the probe results", async () => {
    await using server = await CriServer.serve({ version });
    server.kill();
    using runtime = runtimeAmong([server.path]);
    await expect(runtime.version(signal)).rejects.toThrow(
      /no container runtime found at .*runtime\.sock \(missing\)/,
    );
    expect(runtime.connections()).toBe(0);
    await server.start();
    expect(await runtime.version(signal)).toMatchObject({ runtimeName: "x" });
    expect(runtime.connections()).toBe(1);
  });

  it("is not connected to after it was disposed", async () => {
    await using server = await CriServer.serve({ version });
    const runtime = runtimeAmong([server.path]);
    const asked = runtime.version(signal);
    runtime[Symbol.dispose]();
    await expect(asked).rejects.toMatchObject({ code: "stopped" });
  });
});
