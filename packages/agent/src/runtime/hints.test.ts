import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { stopped } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { connected, containerOf, failure, sandboxOf } from "./testing/connected.ts";
import { type CriAnswers, refusal, type Stream } from "./testing/cri-server.ts";
import type { RuntimeHint } from "./types.ts";

async function all(hints: AsyncIterable<RuntimeHint>): Promise<RuntimeHint[]> {
  const received: RuntimeHint[] = [];
  for await (const hint of hints) received.push(hint);
  return received;
}

const inFlight = (test: Awaited<ReturnType<typeof connected>>) =>
  test.value("nodekeeper_runtime_calls_in_flight", { method: "GetContainerEvents" });

const lists: CriAnswers = {
  listPodSandbox: () => ({ items: [sandboxOf("a")] }),
  listContainers: () => ({ containers: [containerOf("a-sandbox", "a1")] }),
};

describe("hints", () => {
  it("name the pod, and end when the runtime ends them", async () => {
    await using test = await connected({
      *getContainerEvents() {
        yield { containerId: "a1", createdAt: 5n, podSandboxStatus: sandboxOf("a") };
        yield { containerId: "b1", containerEventType: 2, createdAt: 6n, podSandboxStatus: sandboxOf("b") };
      },
    });
    expect(await all(test.runtime.hints(test.signal))).toEqual([
      { podUid: "a", createdAt: 5n, exits: [] },
      { podUid: "b", createdAt: 6n, exits: [] },
    ]);
    expect(await inFlight(test)).toBe(0);
  });

  it("of a deletion without a status find the pod among what was listed, also when it is listed no more", async () => {
    await using test = await connected({
      ...lists,
      *getContainerEvents() {
        for (const containerId of ["a1", "a-sandbox", "ghost"]) yield { containerId, containerEventType: 3 };
      },
    });
    await test.runtime.listPods(test.signal);
    const received = [{ podUid: "a" }, { podUid: "a" }, { podUid: "" }];
    expect(await all(test.runtime.hints(test.signal))).toMatchObject(received);
    test.server.answers = { ...test.server.answers, listPodSandbox: () => ({}), listContainers: () => ({}) };
    await test.runtime.listPods(test.signal);
    expect(await all(test.runtime.hints(test.signal))).toMatchObject(received);
    expect(await test.anomalies("eventOfNoPod")).toBe(2);
  });

  it("of a deletion find the pod of an earlier hint", async () => {
    await using test = await connected({
      *getContainerEvents() {
        yield { containerId: "a1", podSandboxStatus: sandboxOf("a") };
        yield { containerId: "a1", containerEventType: 3 };
      },
    });
    expect((await all(test.runtime.hints(test.signal))).map(({ podUid }) => podUid)).toEqual(["a", "a"]);
  });

  it("are unsupported where the runtime has no such call", async () => {
    await using test = await connected({});
    expect(await failure(all(test.runtime.hints(test.signal)))).toMatchObject({ code: "unsupported" });
  });

  it("fail while the runtime is unavailable, rather than end", async () => {
    await using test = await connected({});
    test.server.kill();
    expect(await failure(all(test.runtime.hints(test.signal)))).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("GetContainerEvents"),
    });
  });

  it.each(["killed", "failing"])("fail when the runtime is %s meanwhile", async (how) => {
    await using test = await connected({
      async *getContainerEvents() {
        yield { containerId: "a1", podSandboxStatus: sandboxOf("a") };
        if (how === "killed") await new Promise(() => {});
        throw refusal(13, "subscriber is too slow");
      },
    });
    const hints = test.runtime.hints(test.signal)[Symbol.asyncIterator]();
    expect(await hints.next()).toMatchObject({ value: { podUid: "a" } });
    if (how === "killed") test.server.kill();
    expect(await failure(hints.next())).toMatchObject({ code: "unavailable" });
    expect(await inFlight(test)).toBe(0);
  });

  it("stop with the signal's reason, before the stream is open and after", async () => {
    await using test = await connected({
      async *getContainerEvents(_, stream) {
        yield { containerId: "a1", podSandboxStatus: sandboxOf("a") };
        await once(stream, "cancelled");
        test.server.calls.set("cancelled", 1);
      },
    });
    const reason = stopped("test is over");
    expect(await failure(all(test.runtime.hints(AbortSignal.abort(reason))))).toBe(reason);
    const controller = new AbortController();
    const hints = test.runtime.hints(controller.signal)[Symbol.asyncIterator]();
    await hints.next();
    const next = failure(hints.next());
    controller.abort(reason);
    expect(await next).toBe(reason);
    await eventually(() => expect(test.server.calls.get("cancelled")).toBe(1));
  });

  it("that are no longer consumed end the call", async () => {
    await using test = await connected({
      *getContainerEvents() {
        for (;;) yield { containerId: "a1", podSandboxStatus: sandboxOf("a") };
      },
    });
    for await (const hint of test.runtime.hints(test.signal)) {
      expect(hint.podUid).toBe("a");
      break;
    }
    expect(await inFlight(test)).toBe(0);
  });

  it("wait at the runtime while the consumer is slow, and calls continue beside them", async () => {
    let written = 0;
    let stream: Stream | undefined;
    await using test = await connected({
      version: () => ({ runtimeApiVersion: "v1" }),
      *getContainerEvents(_, opened) {
        stream = opened;
        const name = "x".repeat(1_000);
        for (; written < 100_000; written++) {
          yield { containerId: `c${written}`, podSandboxStatus: { metadata: { uid: "a", name } } };
        }
      },
    });
    const hints = test.runtime.hints(test.signal)[Symbol.asyncIterator]();
    await hints.next();
    let before = -1;
    while (before !== written) {
      before = written;
      for (let turns = 0; turns < 20; turns++) await turn();
      await test.runtime.version(test.signal);
    }
    expect(stream?.writableNeedDrain).toBe(true);
    expect(written).toBeLessThan(2_000);
    for (let taken = 1; taken < before; taken++) expect((await hints.next()).done).toBe(false);
    await eventually(() => expect(written).toBeGreaterThan(before));
    await hints.return?.();
  });
});
