import { createServer } from "node:net";
import { FakeClock, Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { CriRuntime } from "./cri-runtime.ts";
import { connected, containerOf, failure, sandboxOf } from "./testing/connected.ts";
import { CriServer, refusal } from "./testing/cri-server.ts";

const version = () => ({ runtimeName: "test", runtimeVersion: "1.0", runtimeApiVersion: "v1" });
// The client checks the version of CRI and returns the rest.
const { runtimeApiVersion: _, ...returned } = version();
const never = () => new Promise<never>(() => {});

/** Replaces a runtime by a process that accepts connections and never sends anything. */
async function replaceByMute(runtime: CriServer) {
  runtime.kill();
  let dialled = 0;
  const server = createServer(() => dialled++).listen(runtime.path);
  await eventually(() => expect(server.listening).toBe(true));
  return { server, dialled: () => dialled };
}

describe("a runtime", () => {
  it("returns its version", async () => {
    await using test = await connected({ version });
    expect(await test.runtime.version(test.signal)).toEqual(returned);
  });

  it("that speaks another version of CRI is unsupported", async () => {
    await using test = await connected({ version: () => ({ ...version(), runtimeApiVersion: "v1alpha2" }) });
    expect(await failure(test.runtime.version(test.signal))).toMatchObject({
      code: "unsupported",
      id: "NK1405",
      message: 'Version: runtime "test" "1.0" has CRI version "v1alpha2"; required: v1',
    });
  });

  it("that hangs in one call fails that call at its deadline, by name, and no other", async () => {
    const clock = new FakeClock();
    await using test = await connected(
      { version, listPodSandbox: () => ({}), listContainers: never },
      { clock },
    );
    const list = failure(test.runtime.listPods(test.signal));
    await eventually(() => expect(test.server.count("listContainers")).toBe(1));
    await test.runtime.version(test.signal);
    await clock.step(119_999);
    expect(await Promise.race([list, "waits"])).toBe("waits");
    await clock.step(1);
    expect(await list).toMatchObject({
      code: "deadline",
      id: "NK1404",
      message: "ListContainers: no response within 120000 ms",
    });
    expect(clock.timers).toBe(0);
    const labels = { method: "ListContainers", result: "deadline", le: "+Inf" };
    expect(await test.value("nodekeeper_runtime_call_duration_seconds", labels)).toBe(1);
  });

  it("that answers after 30 seconds is waited for", async () => {
    const clock = new FakeClock();
    const answer = Promise.withResolvers<object>();
    await using test = await connected(
      { listPodSandbox: () => ({ items: [sandboxOf("a")] }), listContainers: () => answer.promise },
      { clock },
    );
    const list = test.runtime.listPods(test.signal);
    await eventually(() => expect(test.server.count("listContainers")).toBe(1));
    await clock.step(30_000);
    answer.resolve({ containers: [containerOf("a-sandbox", "a1")] });
    expect(await list).toMatchObject([{ containers: [{ id: "a1" }] }]);
  });

  it.each([
    ["random bytes", Uint8Array.from({ length: 300 }, (_, index) => (index * 73 + 11) % 256)],
    ["zeros", new Uint8Array(64)],
    ["half a list", Uint8Array.of(0x0a, 0x20, 0x0a, 0x10, 0x61)],
  ])("that answers %s fails the call by name, and the next one is fine", async (_, garbage) => {
    await using test = await connected({
      version,
      listPodSandbox: () => ({}),
      listContainers: () => garbage,
    });
    expect(await failure(test.runtime.listPods(test.signal))).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/^ListContainers: failed to read the response/),
    });
    await test.runtime.version(test.signal);
    // One of lists and one of everything else: neither was given up for it.
    expect(test.runtime.connections()).toBe(2);
  });

  it("that answers 20 MiB fails with the limit, and the next call is fine", async () => {
    const item = containerOf("a-sandbox", "x".repeat(1024 * 1024));
    await using test = await connected({
      version,
      listPodSandbox: () => ({}),
      listContainers: () => ({ containers: new Array(20).fill(item) }),
    });
    expect(await failure(test.runtime.listPods(test.signal))).toMatchObject({
      code: "exhausted",
      id: "NK1406",
      message: expect.stringMatching(
        /^ListContainers: a message of \d{8} bytes exceeds the size limit \(runtime\.maxMessageSize is 16777216 bytes\)/,
      ),
    });
    await test.runtime.version(test.signal);
  });

  it("that is killed and comes back is found again, on a new connection", async () => {
    await using test = await connected({ version });
    await test.runtime.version(test.signal);
    expect(test.runtime.connections()).toBe(1);
    test.server.kill();
    expect(await failure(test.runtime.version(test.signal))).toMatchObject({ code: "unavailable" });
    await test.server.start();
    await eventually(() => test.runtime.version(test.signal));
    expect(test.runtime.connections()).toBe(2);
  });

  it("whose calls are broken off by a kill fails them at once", async () => {
    await using test = await connected({ version: never });
    const call = failure(test.runtime.version(test.signal));
    await eventually(() => expect(test.server.count("version")).toBe(1));
    test.server.kill();
    expect(await call).toMatchObject({ code: "unavailable", message: expect.stringMatching(/^Version: /) });
  });

  it("that is not there yet is unavailable, and used once it is", async () => {
    await using server = await CriServer.serve({ version });
    server.kill();
    using runtime = new CriRuntime({
      endpoint: server.path,
      clock: systemClock,
      log: silentLogger,
      registry: new Registry(),
    });
    const { signal } = new AbortController();
    expect(await failure(runtime.version(signal))).toMatchObject({ code: "unavailable" });
    expect(runtime.connections()).toBe(0);
    await server.start();
    await expect
      .poll(() => runtime.version(signal).then(() => true, String), { timeout: 5_000, interval: 20 })
      .toBe(true);
  });

  it("that takes connections and never speaks is dialled again, and found when it is replaced", async () => {
    const clock = new FakeClock();
    await using test = await connected({ version }, { clock });
    const mute = await replaceByMute(test.server);
    const call = failure(test.runtime.version(test.signal));
    await eventually(() => expect(mute.dialled()).toBe(1));
    await clock.step(10_000);
    expect(await call).toMatchObject({ code: "unavailable" });
    mute.server.close();
    await test.server.start();
    expect(await test.runtime.version(test.signal)).toEqual(returned);
    expect(test.runtime.connections()).toBe(1);
  });

  it("that takes connections and never speaks fails lists as soon as other calls, and lists again when it is replaced", async () => {
    const clock = new FakeClock();
    await using test = await connected({ listPodSandbox: () => ({}), listContainers: () => ({}) }, { clock });
    const mute = await replaceByMute(test.server);
    const list = failure(test.runtime.listPods(test.signal));
    await eventually(() => expect(mute.dialled()).toBe(1));
    await clock.step(9_999);
    expect(test.runtime.callsInFlight().map(({ method }) => method)).toContain("StreamContainers");
    await clock.step(1);
    expect(await list).toMatchObject({
      code: "unavailable",
      message: `StreamPodSandboxes: the process that listens at ${test.server.path} has not spoken HTTP/2 for 10s`,
    });
    mute.server.close();
    await test.server.start();
    expect(await test.runtime.listPods(test.signal)).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it("is left with the caller's reason, at once", async () => {
    await using test = await connected({ listPodSandbox: never, listContainers: never });
    const controller = new AbortController();
    const list = failure(test.runtime.listPods(controller.signal));
    await eventually(() => expect(test.server.count("listContainers")).toBe(1));
    const reason = stopped("test is over");
    controller.abort(reason);
    expect(await list).toBe(reason);
  });

  it("is asked nothing more by a client that is closed", async () => {
    await using test = await connected({ version });
    test.runtime[Symbol.dispose]();
    expect(await failure(test.runtime.version(test.signal))).toMatchObject({ code: "stopped" });
    const hints = test.runtime.hints(test.signal)[Symbol.asyncIterator]();
    expect(await failure(hints.next())).toMatchObject({ code: "stopped" });
    expect(test.server.count("version")).toBe(0);
  });
});

describe("stopping a container", () => {
  it("hands on the timeout, and treats a removed one as stopped", async () => {
    const asked: unknown[] = [];
    await using test = await connected({
      stopContainer: (request) => {
        asked.push(request);
        if (request.containerId === "deleted") throw refusal(5);
        return {};
      },
    });
    await test.runtime.stopContainer("a1", 30, test.signal);
    await test.runtime.stopContainer("deleted", 0, test.signal);
    expect(asked).toEqual([
      { containerId: "a1", timeout: 30n },
      { containerId: "deleted", timeout: 0n },
    ]);
    for (const bad of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(await failure(test.runtime.stopContainer("a1", bad, test.signal))).toMatchObject({
        code: "invalid",
      });
    }
  });

  it("has the timeout before the deadline of other calls begins", async () => {
    const clock = new FakeClock();
    await using test = await connected(
      { stopContainer: never },
      { clock, settings: { requestTimeout: 5_000 } },
    );
    const stop = failure(test.runtime.stopContainer("a1", 30, test.signal));
    await eventually(() => expect(test.server.count("stopContainer")).toBe(1));
    const overdue = () =>
      test.runtime.callsInFlight().map(({ method, startedAt }) => [method, clock.monotonic() - startedAt]);
    // As long as the runtime waits for the container, it does what it was asked to.
    await clock.step(29_000);
    expect(overdue()).toEqual([]);
    await clock.step(5_999);
    expect(overdue()).toEqual([["StopContainer", 4_999]]);
    expect(await Promise.race([stop, "waits"])).toBe("waits");
    await clock.step(1);
    expect(await stop).toMatchObject({
      code: "deadline",
      message: "StopContainer of a1: no response within 35000 ms",
    });
  });
});
