import { writeFileSync } from "node:fs";
import { systemClock } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { findRuntimeEndpoint, parseRuntimeEndpoint } from "./endpoint.ts";
import { CriServer } from "./testing/cri-server.ts";

describe("a runtime's endpoint", () => {
  it.each([
    ["unix:///run/containerd/containerd.sock", "/run/containerd/containerd.sock"],
    ["unix:/run/crio/crio.sock", "/run/crio/crio.sock"],
    ["/run/crio/crio.sock", "/run/crio/crio.sock"],
  ])("%s is the socket %s", (endpoint, path) => {
    expect(parseRuntimeEndpoint(endpoint)).toBe(path);
  });

  it.each([
    "",
    "run/crio.sock",
    "unix://run/crio.sock",
    "tcp://127.0.0.1:1234",
    "npipe:////./pipe/x",
    `/${"x".repeat(107)}`,
  ])("%s is refused", (endpoint) => {
    expect(() => parseRuntimeEndpoint(endpoint)).toThrow(expect.objectContaining({ code: "invalid" }));
  });

  it("is found if a process listens, with the results for all paths", async () => {
    await using dead = await CriServer.serve({});
    await using alive = await CriServer.serve({});
    const stale = `${dead.path}.stale`;
    writeFileSync(stale, "");
    dead.kill();
    const found = await findRuntimeEndpoint(systemClock, [dead.path, stale, alive.path, "/nowhere/x.sock"]);
    expect(found).toEqual({
      path: alive.path,
      lookedAt: [
        { path: dead.path, found: "missing" },
        { path: stale, found: "refused" },
        { path: alive.path, found: "accepts" },
        { path: "/nowhere/x.sock", found: "missing" },
      ],
    });
    expect((await findRuntimeEndpoint(systemClock, [stale])).path).toBeUndefined();
  });
});
