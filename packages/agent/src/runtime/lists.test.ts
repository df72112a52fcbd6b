import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { connected, containerOf, failure, sandboxOf } from "./testing/connected.ts";
import { type CriAnswers, refusal } from "./testing/cri-server.ts";

const whole: CriAnswers = {
  listPodSandbox: () => ({ items: [sandboxOf("a"), sandboxOf("b")] }),
  listContainers: () => ({ containers: [containerOf("a-sandbox", "a1"), containerOf("b-sandbox", "b1")] }),
};

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

  it("in which nothing has changed give the same pods again, whatever their order", async () => {
    const items = [sandboxOf("a"), sandboxOf("b")];
    const containers: (Omit<ReturnType<typeof containerOf>, "state"> & { state: 1 | 2 })[] = [
      containerOf("a-sandbox", "a1"),
      containerOf("b-sandbox", "b1"),
    ];
    await using test = await connected({
      listPodSandbox: () => ({ items: items.reverse() }),
      listContainers: () => ({ containers: containers.reverse() }),
    });
    const first = await test.runtime.listPods(test.signal);
    expect(first.map(({ uid }) => uid).sort()).toEqual(["a", "b"]);
    expect(await test.runtime.listPods(test.signal)).toBe(first);
    const states = async () =>
      (await test.runtime.listPods(test.signal))
        .flatMap((pod) => pod.containers.map(({ id, state }) => `${id} ${state}`))
        .sort();
    containers[0] = { ...containers[0]!, state: 2 };
    expect(await states()).toContain(`${containers.find(({ state }) => state === 2)!.id} exited`);
    containers.pop();
    expect(await states()).toHaveLength(1);
    containers.pop();
    items.pop();
    expect(await test.runtime.listPods(test.signal)).toHaveLength(1);
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

  it.each([
    ["ours", 4_000, undefined],
    ["the runtime's", 16 * 2 ** 20, 20],
  ])(
    "over a limit of size, %s, are asked for in parts: nothing twice, nothing left out",
    async (_, maxMessageSize, most) => {
      const containers = Array.from({ length: 200 }, (_, at) => ({
        ...containerOf(`${at % 10}-sandbox`, `c${at}-${"x".repeat(30)}`),
        state: at % 20 < 17 ? 2 : 1,
      }));
      const sandboxes = Array.from({ length: 10 }, (_, at) => ({
        ...sandboxOf(`${at}`),
        state: (at % 2) as 0 | 1,
      }));
      const answers: CriAnswers = {
        listPodSandbox: ({ filter }) => ({
          items: sandboxes.filter(({ state }) => !filter?.state || filter.state.state === state),
        }),
        listContainers: ({ filter }) => {
          const found = containers.filter(
            ({ state, podSandboxId }) =>
              (!filter?.state || filter.state.state === state) &&
              (!filter?.podSandboxId || filter.podSandboxId === podSandboxId),
          );
          if (most && found.length > most) throw refusal(8, "grpc: trying to send message larger than max");
          return { containers: found as never };
        },
      };
      await using test = await connected(answers, { settings: { maxMessageSize } });
      const ids = async () =>
        (await test.runtime.listPods(test.signal))
          .flatMap((pod) => pod.containers.map(({ id }) => id))
          .sort();
      expect(await ids()).toEqual(containers.map(({ id }) => id).sort());
      expect(await test.anomalies("listTooLarge")).toBe(1);
      // The next one is not tried as a whole, and one of a node that has become empty is.
      expect(await ids()).toHaveLength(200);
      expect(await test.anomalies("listTooLarge")).toBe(1);
      containers.splice(20);
      expect(await ids()).toHaveLength(20);
      const calls = test.server.count("listContainers");
      expect(await ids()).toHaveLength(20);
      expect(test.server.count("listContainers")).toBe(calls + 1);
    },
  );

  it("of which one part is too large name the setting", async () => {
    const answers: CriAnswers = {
      listPodSandbox: () => ({ items: [sandboxOf("a")] }),
      listContainers: () => ({ containers: [containerOf("a-sandbox", "x".repeat(2_000))] }),
    };
    await using test = await connected(answers, { settings: { maxMessageSize: 1_000 } });
    expect(await failure(test.runtime.listPods(test.signal))).toMatchObject({
      code: "exhausted",
      message: expect.stringMatching(/^ListContainers: .*runtime\.maxMessageSize is 1000 bytes/),
    });
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
    expect(await test.anomalies("podWithoutLabel")).toBe(1);
  });

  it("returns that a pod listed before was removed", async () => {
    await using test = await connected(byLabel);
    await test.runtime.listPods(test.signal);
    test.server.answers = { listPodSandbox: () => ({}), listContainers: () => ({}) };
    expect(await test.runtime.listPod("a", test.signal)).toBeUndefined();
    expect(await test.anomalies("podWithoutLabel")).toBe(0);
  });
});
