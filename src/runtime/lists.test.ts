import { describe, expect, it } from "vitest";
import { connected, containerOf, failure, sandboxOf } from "./testing/connected.ts";
import { type CriAnswers, refusal } from "./testing/cri-server.ts";

const whole: CriAnswers = {
  listPodSandbox: () => ({ items: [sandboxOf("a"), sandboxOf("b")] }),
  listContainers: () => ({ containers: [containerOf("a-sandbox", "a1"), containerOf("b-sandbox", "b1")] }),
};

async function until(what: string, look: () => Promise<boolean> | boolean): Promise<void> {
  const end = performance.now() + 5_000;
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe("lists", () => {
  it("are grouped by pod, what is newest first", async () => {
    await using test = await connected({
      listPodSandbox: () => ({
        items: [
          { ...sandboxOf("a", "old"), state: 1, createdAt: 1n },
          { ...sandboxOf("a", "new"), createdAt: 9n, metadata: { ...sandboxOf("a").metadata, attempt: 1 } },
          sandboxOf("empty"),
        ],
      }),
      listContainers: () => ({
        containers: [
          { ...containerOf("old", "first"), state: 2, createdAt: 2n },
          { ...containerOf("new", "second"), state: 0, createdAt: 10n },
        ],
      }),
    });
    const container = { kind: "container", attempt: 0 } as const;
    const sandbox = { kind: "sandbox", name: "" } as const;
    expect(await test.runtime.listPods(test.signal)).toEqual([
      {
        uid: "a",
        name: "pod-a",
        namespace: "default",
        sandboxes: [
          { ...sandbox, id: "new", state: "running", attempt: 1, createdAt: 9n },
          { ...sandbox, id: "old", state: "exited", attempt: 0, createdAt: 1n },
        ],
        containers: [
          { ...container, id: "second", name: "second", state: "created", createdAt: 10n },
          { ...container, id: "first", name: "first", state: "exited", createdAt: 2n },
        ],
      },
      {
        uid: "empty",
        name: "pod-empty",
        namespace: "default",
        sandboxes: [{ ...sandbox, id: "empty-sandbox", state: "running", attempt: 0, createdAt: 1n }],
        containers: [],
      },
    ]);
  });

  it("ask for both at once", async () => {
    const both = Promise.withResolvers<void>();
    let asked = 0;
    const meet = async () => {
      if (++asked === 2) both.resolve();
      await both.promise;
      return {};
    };
    await using test = await connected({ listPodSandbox: meet, listContainers: meet });
    expect(await test.runtime.listPods(test.signal)).toEqual([]);
  });

  it("fail when one of the two fails, with the call's name, and leave nothing in flight", async () => {
    await using test = await connected({
      listPodSandbox: () => new Promise(() => {}),
      listContainers: () => Promise.reject(refusal(14, "metadata store is closed")),
    });
    expect(await failure(test.runtime.listPods(test.signal))).toMatchObject({
      code: "unavailable",
      message: "ListContainers: metadata store is closed",
    });
    for (const method of ["ListPodSandbox", "ListContainers"]) {
      expect(await test.value("nodekeeper_runtime_calls_in_flight", { method })).toBe(0);
    }
  });

  it("come in parts where the runtime streams them, 10,000 containers too", async () => {
    const uids = Array.from({ length: 1_000 }, (_, index) => `pod${index}`);
    await using test = await connected({
      ...whole,
      *streamPodSandboxes() {
        yield { podSandboxes: [] };
        for (const uid of uids) yield { podSandboxes: [sandboxOf(uid)] };
      },
      *streamContainers() {
        for (const uid of uids) {
          const containers = Array.from({ length: 10 }, (_, index) =>
            containerOf(`${uid}-sandbox`, `${uid}-${index}`),
          );
          yield { containers };
        }
      },
    });
    const pods = await test.runtime.listPods(test.signal);
    expect(pods).toHaveLength(1_000);
    expect(pods.every(({ containers }) => containers.length === 10)).toBe(true);
    expect([test.server.count("listContainers"), test.server.count("listPodSandbox")]).toEqual([0, 0]);
  });

  it("that break off in the middle of a stream fail, and are no shorter list", async () => {
    await using test = await connected({
      ...whole,
      *streamPodSandboxes() {
        yield { podSandboxes: [sandboxOf("a")] };
        throw refusal(13, "scan failed");
      },
      *streamContainers() {},
    });
    expect(await failure(test.runtime.listPods(test.signal))).toMatchObject({
      code: "unavailable",
      message: "StreamPodSandboxes: scan failed",
    });
    expect(test.server.count("listPodSandbox")).toBe(0);
  });

  it("of a stream without an end are given up", async () => {
    await using test = await connected(
      {
        *streamPodSandboxes() {},
        *streamContainers() {
          for (;;) yield { containers: [containerOf("s", "a"), containerOf("s", "b")] };
        },
      },
      { settings: { maxListed: 100 } },
    );
    expect(await failure(test.runtime.listPods(test.signal))).toMatchObject({
      code: "exhausted",
      message: "StreamContainers: more than 100 items",
    });
  });

  it("are asked for as streams once for each connection", async () => {
    await using test = await connected(whole);
    for (let round = 0; round < 3; round++) await test.runtime.listPods(test.signal);
    expect(test.server.count("listContainers")).toBe(3);
    expect(test.server.count("streamContainers")).toBe(1);
    test.server.kill();
    test.server.answers = { ...whole, *streamPodSandboxes() {}, *streamContainers() {} };
    await test.server.start();
    await until("the new runtime's streams", () =>
      test.runtime.listPods(test.signal).then(
        (pods) => pods.length === 0,
        () => false,
      ),
    );
    // The list with which it connected was of the old kind.
    expect(test.server.count("listContainers")).toBeLessThanOrEqual(4);
    expect(test.runtime.connections()).toBe(2);
  });
});

describe("the list of one pod", () => {
  const byLabel: CriAnswers = {
    listPodSandbox: ({ filter }) => ({
      items: [sandboxOf("a"), sandboxOf("b")].filter(({ id, metadata }) => {
        if (!filter) return true;
        return filter.id ? filter.id === id : filter.labelSelector["io.kubernetes.pod.uid"] === metadata.uid;
      }),
    }),
    listContainers: ({ filter }) => ({
      containers: [containerOf("a-sandbox", "a1"), containerOf("b-sandbox", "b1")].filter(({ id }) =>
        filter ? id.startsWith(filter.labelSelector["io.kubernetes.pod.uid"] ?? "?") : true,
      ),
    }),
  };

  it("asks by the label with its UID", async () => {
    await using test = await connected(byLabel);
    expect(await test.runtime.listPod("b", test.signal)).toMatchObject({
      uid: "b",
      sandboxes: [{ id: "b-sandbox" }],
      containers: [{ id: "b1" }],
    });
    expect(await test.runtime.listPod("ghost", test.signal)).toBeUndefined();
    expect(test.server.count("listContainers")).toBe(2);
  });

  it("takes no other pod's from a runtime that ignores the filter", async () => {
    await using test = await connected(whole);
    expect(await test.runtime.listPod("b", test.signal)).toMatchObject({ containers: [{ id: "b1" }] });
    expect(await test.runtime.listPod("ghost", test.signal)).toBeUndefined();
  });

  it("finds a pod whose sandbox has no labels, as crictl makes them", async () => {
    await using test = await connected({
      listPodSandbox: ({ filter }) => ({ items: filter && !filter.id ? [] : [sandboxOf("a")] }),
      listContainers: ({ filter }) => ({
        containers: filter && !filter.podSandboxId ? [] : [containerOf("a-sandbox", "a1")],
      }),
    });
    await test.runtime.listPods(test.signal);
    for (let round = 0; round < 2; round++) {
      expect(await test.runtime.listPod("a", test.signal)).toMatchObject({ containers: [{ id: "a1" }] });
    }
    expect(await test.oddities("podWithoutLabel")).toBe(1);
  });

  it("tells that a pod is gone which was listed before", async () => {
    await using test = await connected(byLabel);
    await test.runtime.listPods(test.signal);
    test.server.answers = { listPodSandbox: () => ({}), listContainers: () => ({}) };
    expect(await test.runtime.listPod("a", test.signal)).toBeUndefined();
    expect(await test.oddities("podWithoutLabel")).toBe(0);
  });
});
