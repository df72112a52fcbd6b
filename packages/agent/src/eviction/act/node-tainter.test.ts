import {
  ApiStatusError,
  createKubeMetrics,
  type KubeApiClient,
  type KubeObject,
  type WatchEvent,
} from "@nodekeeper/core/kube";
import {
  createWorkQueueMetrics,
  type ErrorCode,
  FakeClock,
  NodekeeperError,
  Registry,
  silentLogger,
} from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OWN_TAINTS } from "../../reporting/index.ts";
import { createEvictionMetrics } from "../metrics.ts";
import type { LiveTaint } from "../parts.ts";
import { testPolicy } from "../testing/rounds.ts";
import { NodeTainter } from "./node-tainter.ts";

type Call = "list" | "watch" | "get" | "patch";

/** The API server's Node, in memory; calls fail as configured by a test. */
class FakeNode {
  readonly clock: FakeClock;
  /** Undefined: there is no Node. */
  taints: LiveTaint[] | undefined = [];
  fault: (call: Call) => NodekeeperError | undefined = () => undefined;
  readonly calls: { call: Call; at: number }[] = [];
  /** What happens between the next write and its answer. */
  beforeAnswer: (() => void) | undefined;
  /** The list of the agent's taints; null: there is none. */
  annotation: string | null = null;
  /** The owner of the list of taints in managedFields. */
  #writer: string | undefined;
  #version = 1;
  #watches = new Set<{
    onEvent: (event: WatchEvent, length: number) => void;
    end: (error: unknown) => void;
  }>();

  constructor(clock: FakeClock) {
    this.clock = clock;
  }

  get client(): KubeApiClient {
    const client: Partial<KubeApiClient> = {
      list: async () => {
        this.#called("list");
        return { items: this.taints ? [this.#object()] : [], resourceVersion: `${this.#version}` };
      },
      watch: async (_resource, { onOpen, onEvent, signal, resourceVersion }) => {
        this.#called("watch");
        onOpen?.();
        // What happened since that version, in one event.
        if (resourceVersion !== `${this.#version}`) {
          onEvent({ type: this.taints ? "MODIFIED" : "DELETED", object: this.#object() }, 0);
        }
        const { promise, reject } = Promise.withResolvers<void>();
        const watch = { onEvent, end: reject };
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
        this.#watches.add(watch);
        await promise.finally(() => this.#watches.delete(watch));
      },
      get: async () => {
        this.#called("get");
        if (this.taints === undefined) throw noNode();
        return this.#object();
      },
      mergePatch: async (_resource, _name, patch) => {
        this.#called("patch");
        if (this.taints === undefined) throw noNode();
        const { metadata, spec } = patch as {
          metadata: { resourceVersion: string; annotations?: Record<string, string | null> };
          spec: { taints: LiveTaint[] };
        };
        if (metadata.resourceVersion !== `${this.#version}`)
          throw new NodekeeperError("conflict", "modified");
        const { [OWN_TAINTS]: own = this.annotation } = metadata.annotations ?? {};
        this.annotation = own;
        this.put(spec.taints, "nodekeeper");
        const answer = this.#object();
        const happens = this.beforeAnswer;
        this.beforeAnswer = undefined;
        happens?.();
        return answer;
      },
    };
    return client as KubeApiClient;
  }

  /** As another client would write the Node; undefined deletes it. */
  put(taints: LiveTaint[] | undefined, writer = "kubectl-taint"): void {
    if (taints === undefined) this.annotation = null;
    this.#writer = taints && taints.length > 0 ? writer : undefined;
    const type = taints === undefined ? "DELETED" : this.taints === undefined ? "ADDED" : "MODIFIED";
    const before = this.#object();
    this.taints = taints;
    this.#version++;
    const object = taints === undefined ? before : this.#object();
    for (const { onEvent } of this.#watches) onEvent({ type, object }, 0);
  }

  /** Ends all watches, as a server that restarts. */
  cut(): void {
    for (const { end } of this.#watches) end(new NodekeeperError("unavailable", "cut"));
  }

  count(call: Call): number {
    return this.calls.filter((one) => one.call === call).length;
  }

  #called(call: Call): void {
    this.calls.push({ call, at: this.clock.monotonic() });
    const error = this.fault(call);
    if (error) throw error;
  }

  #object(): KubeObject {
    const update = { operation: "Update", time: "2026-11-21T04:00:00Z" };
    const ofAgent = { "f:metadata": { "f:annotations": { [`f:${OWN_TAINTS}`]: {} } } };
    const managedFields = [
      ...(this.annotation === null ? [] : [{ ...update, manager: "nodekeeper", fieldsV1: ofAgent }]),
      ...(this.#writer
        ? [{ ...update, manager: this.#writer, fieldsV1: { "f:spec": { "f:taints": {} } } }]
        : []),
    ];
    const annotations: Record<string, string> =
      this.annotation === null ? {} : { [OWN_TAINTS]: this.annotation };
    const metadata = {
      name: "node-1",
      uid: "u",
      resourceVersion: `${this.#version}`,
      annotations,
      managedFields,
    };
    return { apiVersion: "v1", kind: "Node", metadata, spec: { taints: this.taints } };
  }
}

function noNode(): NodekeeperError {
  const summary = { reason: "NotFound", kind: "nodes", name: "node-1", causes: [] };
  return new ApiStatusError("notFound", 'nodes "node-1" not found', { httpStatus: 404, summary }, undefined);
}

const failing = (code: ErrorCode, retryAfterMs?: number) =>
  new NodekeeperError(code, `it is ${code}`, retryAfterMs === undefined ? {} : { retryAfterMs });

function setUp(fault: FakeNode["fault"] = () => undefined) {
  const clock = new FakeClock();
  const node = new FakeNode(clock);
  node.fault = fault;
  const registry = new Registry();
  const events: string[] = [];
  const changes: string[] = [];
  const warnings: string[] = [];
  const tainter = new NodeTainter({
    context: {
      client: node.client,
      nodeName: "node-1",
      events: { record: ({ message }) => void events.push(message) },
      policy: () => testPolicy({ conditionTransitionPeriodMs: 300_000 }),
      clock,
      log: { ...silentLogger, warn: (_: object, message?: string) => void warnings.push(message ?? "") },
      metrics: createEvictionMetrics(registry),
      kubeMetrics: createKubeMetrics(registry),
      queueMetrics: createWorkQueueMetrics(registry),
    },
    fieldManager: "nodekeeper",
    onChange: (message, kind) => void changes.push(`${kind}: ${message}`),
  });
  const stop = new AbortController();
  const running = tainter.run(stop.signal);
  const check = tainter.healthCheck();
  return {
    clock,
    node,
    tainter,
    events,
    changes,
    warnings,
    health: () => check.check(),
    ids: () => node.taints?.map(({ key, effect }) => `${key}:${effect}`),
    /** Rounds of five seconds with these desired taints. */
    async rounds(number: number, ...names: string[]) {
      for (let round = 0; round < number; round++) {
        tainter.setDesired(
          names.map((name) => ({ key: `nodekeeper.dev/${name}`, effect: "NoSchedule", since: 0, why: "" })),
          true,
        );
        await clock.step(5_000);
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

const squeeze = { key: "nodekeeper.dev/Squeeze", effect: "NoSchedule" };
const foreign = { key: "example.com/maintenance", effect: "NoSchedule", value: "by-hand" };

describe("taints of a Node that can't be listed or watched", () => {
  it.each<Call>(["list", "watch"])(
    "are set all the same, and health names the missing right (%s)",
    async (call) => {
      await using test = setUp((one) => (one === call ? failing("forbidden") : undefined));
      await test.rounds(120, "Squeeze");
      expect(test.ids()).toEqual(["nodekeeper.dev/Squeeze:NoSchedule"]);
      expect(test.health()).toEqual({
        ok: false,
        message: expect.stringMatching(/not seen: .*it is forbidden/),
      });
      // Nothing is read or written again and again where nothing changes.
      expect(test.node.count("get")).toBeLessThanOrEqual(2);
      test.node.fault = () => undefined;
      await test.rounds(12, "Squeeze");
      expect(test.health().ok).toBe(true);
    },
  );

  it("fail the check at once where they can't be written either", async () => {
    await using test = setUp(() => failing("forbidden"));
    await test.rounds(2, "Squeeze");
    expect(test.health()).toEqual({
      ok: false,
      message: expect.stringMatching(/does not have the desired taints.*forbidden/),
      errorId: "NK1614",
    });
  });

  it("fail the check if the server is unavailable from the start", async () => {
    await using test = setUp(() => failing("unavailable"));
    await test.clock.step(10_000);
    expect(test.health().ok).toBe(false);
    await test.rounds(13, "Squeeze");
    expect(test.health()).toEqual({
      ok: false,
      message: expect.stringMatching(/for \d\d s: it is unavailable/),
      errorId: "NK1614",
    });
  });
});

describe("a write that fails", () => {
  it("is not repeated before the time of Retry-After, whatever rounds want meanwhile", async () => {
    await using test = setUp();
    test.node.fault = (call) => (call === "patch" ? failing("throttled", 60_000) : undefined);
    await test.rounds(12, "Squeeze");
    await test.rounds(12, "Squeeze", "Other");
    // At 0, 60 and 120 s.
    expect(test.node.count("patch")).toBeLessThanOrEqual(3);
    expect(test.health()).toMatchObject({ ok: false, message: expect.stringContaining("throttled") });
    test.node.fault = () => undefined;
    await test.rounds(13, "Squeeze", "Other");
    expect(test.ids()).toHaveLength(2);
    expect(test.health().ok).toBe(true);
  });

  it("does not hide, once it succeeds, what another client changed before its answer came", async () => {
    await using test = setUp();
    test.node.fault = (call) => (call === "patch" ? failing("unavailable") : undefined);
    await test.rounds(1, "Squeeze");
    test.node.fault = () => undefined;
    test.node.beforeAnswer = () => test.node.put([foreign]);
    await test.rounds(12, "Squeeze");
    expect(test.node.beforeAnswer).toBeUndefined();
    expect(test.node.taints).toEqual([foreign, squeeze].map((taint) => expect.objectContaining(taint)));
  });

  it("is repeated ever more slowly without one", async () => {
    await using test = setUp();
    test.node.fault = (call) => (call === "patch" ? failing("unavailable") : undefined);
    await test.rounds(24, "Squeeze");
    // 0.5, 0.5, 1, 1, 2, 2 s and so on, up to 30; of equal delays the first is a random part.
    expect(test.node.count("patch")).toBeLessThanOrEqual(18);
  });
});

describe("what another client does", () => {
  it.each<[string, LiveTaint[]]>([
    ["a removed taint", [foreign]],
    ["a changed value", [{ ...squeeze, value: "x" }, foreign]],
  ])("%s is put back, and foreign taints stay", async (_, taints) => {
    await using test = setUp();
    test.node.put([foreign]);
    await test.rounds(2, "Squeeze");
    test.node.put(taints);
    await test.rounds(1, "Squeeze");
    expect(test.node.taints).toHaveLength(2);
    expect(test.node.taints).toContainEqual(foreign);
    expect(test.node.taints!.find(({ key }) => key === squeeze.key)?.value).toBeUndefined();
    expect(test.health().ok).toBe(true);
  });

  it("a client that removes ours each time is answered ever more slowly, and health names the conflict", async () => {
    await using test = setUp();
    await test.rounds(2, "Squeeze");
    for (let second = 0; second < 300; second++) {
      test.node.put([]);
      await test.clock.step(1_000);
    }
    expect(test.node.count("patch")).toBeLessThan(25);
    expect(test.health()).toEqual({
      ok: false,
      message: expect.stringContaining("another client keeps changing"),
      errorId: "NK1614",
    });
    await test.rounds(70, "Squeeze");
    expect(test.ids()).toEqual(["nodekeeper.dev/Squeeze:NoSchedule"]);
    expect(test.health().ok).toBe(true);
  });

  it.each([[["Squeeze"]], [[]]])(
    "a deleted Node fails no check, wanted %j, and has its taints when it is back",
    async (wanted) => {
      await using test = setUp();
      await test.rounds(2, "Squeeze");
      test.node.fault = (call) => (call === "patch" ? failing("unavailable") : undefined);
      await test.rounds(2, "Squeeze", "Other");
      test.node.put(undefined);
      test.node.fault = () => undefined;
      await test.rounds(30, ...wanted);
      expect(test.health()).toEqual({ ok: true, message: "Node node-1 does not exist" });
      test.node.put([]);
      await test.rounds(1, ...wanted);
      expect(test.ids()).toEqual(wanted.map((name) => `nodekeeper.dev/${name}:NoSchedule`));
    },
  );
});

describe("what is not the agent's", () => {
  it("stays although it has the prefix, or equals a desired taint, and when the condition clears", async () => {
    const theirs = { ...squeeze, value: "x" };
    const other = { key: "nodekeeper.dev/Other", effect: "NoExecute" };
    await using test = setUp();
    test.node.put([theirs, other]);
    await test.rounds(3, "Squeeze");
    await test.rounds(3);
    expect(test.node.taints).toEqual([theirs, other]);
    expect(test.node.count("patch")).toBe(0);
    await test.rounds(2, "Hot");
    await test.rounds(2);
    expect(test.node.taints).toEqual([theirs, other]);
    expect(test.node.annotation).toBeNull();
    expect(test.health().ok).toBe(true);
  });
});

describe("while it is suspended", () => {
  it("writes nothing: no taint is removed, restored or added", async () => {
    await using test = setUp();
    await test.rounds(2, "Squeeze");
    const patches = test.node.count("patch");
    test.tainter.suspend();
    test.node.put([foreign]);
    await test.clock.step(600_000);
    test.node.put([foreign, { ...squeeze, value: "x" }]);
    await test.clock.step(600_000);
    expect(test.node.count("patch")).toBe(patches);
    expect(test.health()).toEqual({ ok: true, message: "dry run: the Node's taints are left as they are" });
    await test.rounds(1);
    expect(test.node.taints).toEqual([foreign]);
  });

  it("warns of the taints that stay, once in each dry run", async () => {
    await using test = setUp();
    const left = () => test.warnings.filter((message) => message.startsWith("dry run leaves taints"));
    for (const times of [1, 2]) {
      await test.rounds(2, "Squeeze");
      test.tainter.suspend();
      test.node.put([...test.node.taints!, foreign]);
      await test.clock.step(60_000);
      expect(left()).toHaveLength(times);
    }
  });

  it("drops a write whose Node is being read", async () => {
    await using test = setUp();
    await test.rounds(1);
    test.node.fault = (call) => {
      if (call === "get") test.tainter.suspend();
      return undefined;
    };
    await test.rounds(1, "Squeeze");
    expect(test.node.count("get")).toBe(1);
    expect(test.node.taints).toEqual([]);
  });
});

describe("another client is named by managedFields", () => {
  it.each<[string, LiveTaint[], string, string]>([
    [
      "that removed a taint beside others",
      [foreign],
      "taintRemoved: taint nodekeeper.dev/Squeeze:NoSchedule removed by kubectl-taint (Update at 2026-11-21T04:00:00Z)",
      "taintAdded: taint nodekeeper.dev/Squeeze:NoSchedule restored after its removal by kubectl-taint (Update at 2026-11-21T04:00:00Z): ",
    ],
    [
      "that removed the last one, after which managedFields have no owner",
      [],
      "taintRemoved: taint nodekeeper.dev/Squeeze:NoSchedule removed by another client",
      "taintAdded: taint nodekeeper.dev/Squeeze:NoSchedule restored after its removal by another client: ",
    ],
    [
      "that changed its value",
      [{ ...squeeze, value: "x" }],
      "taintChanged: taint nodekeeper.dev/Squeeze:NoSchedule changed by kubectl-taint (Update at 2026-11-21T04:00:00Z)",
      "taintChanged: taint nodekeeper.dev/Squeeze:NoSchedule restored after its change by kubectl-taint (Update at 2026-11-21T04:00:00Z): its value was removed",
    ],
  ])("%s", async (_, taints, lost, restored) => {
    await using test = setUp();
    await test.rounds(2, "Squeeze");
    test.changes.length = 0;
    test.node.put(taints);
    await test.rounds(2, "Squeeze");
    expect(test.changes).toEqual([lost, restored]);
    // The agent's own removal is none by another client.
    test.changes.length = 0;
    await test.rounds(2);
    expect(test.changes).toEqual([expect.stringMatching(/^taintRemoved: .*no longer reported/)]);
  });
});

it("after any faults the Node gets the desired taints, others are unchanged, or health reports why not", async () => {
  const names = fc.subarray(["a", "b"]);
  const calls = fc.subarray<Call>(["list", "watch", "get", "patch"]);
  const codes = fc.constantFrom<ErrorCode>("forbidden", "unavailable", "throttled", "conflict");
  const step = fc.oneof(
    fc.record({ kind: fc.constant("want" as const), names }),
    fc.record({
      kind: fc.constant("fault" as const),
      calls,
      code: codes,
      retryAfterMs: fc.constantFrom(undefined, 60_000),
    }),
    fc.record({ kind: fc.constant("meddle" as const), keep: fc.boolean(), value: fc.constantFrom("", "x") }),
    fc.record({ kind: fc.constant("delete" as const) }),
    fc.record({ kind: fc.constant("create" as const) }),
    fc.record({ kind: fc.constant("cut" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      await using test = setUp();
      let wanted: string[] = [];
      let others: LiveTaint[] = [];
      let silentFor = 0;
      const isRight = () => {
        const { taints } = test.node;
        if (taints === undefined) return true;
        const ours = taints.filter(({ key }) => key?.startsWith("nodekeeper.dev/"));
        const keys = ours.map(({ key }) => key?.slice("nodekeeper.dev/".length)).sort();
        return JSON.stringify(keys) === JSON.stringify(wanted) && ours.every(({ value }) => !value);
      };
      const round = async () => {
        await test.rounds(1, ...wanted);
        silentFor = isRight() || !test.health().ok ? 0 : silentFor + 1;
        // A minute for a watch that is lost, another for a write that fails, and the rounds in which they end.
        expect(silentFor).toBeLessThanOrEqual(26);
        const isOther = ({ key }: LiveTaint) => key === foreign.key;
        if (test.node.taints) expect(test.node.taints.filter(isOther)).toEqual(others);
      };
      await round();
      for (const one of steps) {
        if (one.kind === "want") wanted = one.names;
        else if (one.kind === "fault") {
          test.node.fault = (call) =>
            one.calls.includes(call) ? failing(one.code, one.retryAfterMs) : undefined;
          if (one.calls.includes("watch")) test.node.cut();
        } else if (one.kind === "cut") test.node.cut();
        else if (one.kind === "delete") {
          if (test.node.taints) test.node.put(undefined);
          others = [];
        } else if (one.kind === "create") {
          if (!test.node.taints) test.node.put([]);
        } else if (test.node.taints) {
          const ours = one.keep ? test.node.taints.filter(({ key }) => key !== foreign.key) : [];
          others = [foreign];
          test.node.put([foreign, ...ours.map((taint) => ({ ...taint, value: one.value }))]);
        }
        for (let left = 4; left > 0; left--) await round();
      }
      test.node.fault = () => undefined;
      // Beyond the longest Retry-After, backoff and pace of repairs.
      for (let left = 30; left > 0; left--) await round();
      expect(isRight()).toBe(true);
      expect(test.health().ok || test.health().message.includes("another client")).toBe(true);
    }),
    { numRuns: 60 },
  );
});
