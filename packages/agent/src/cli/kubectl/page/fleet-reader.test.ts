import { FakeClock, NodekeeperError } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import type { AgentConnection } from "../../agent-connection.ts";
import { FleetReader } from "./fleet-reader.ts";
import type { ListedNode, PageSource } from "./page-source.ts";

const answers: Record<string, unknown> = {
  node: { nodeName: "n", version: "1", startedAt: 0, health: { checks: [] }, eviction: null },
  plugins: [],
  objects: [],
};

interface Setup {
  names: readonly string[];
  parallel?: number;
  /** How long the agent of a node takes. */
  tookMs?: (node: string) => number;
  /** Nodes whose agent does not answer. */
  silent?: ReadonlySet<string>;
}

function setUp({ names, parallel = 8, tookMs = () => 0, silent = new Set() }: Setup) {
  const clock = new FakeClock();
  const reads: { node: string; at: number }[] = [];
  let running = 0;
  let most = 0;
  let nodes: ListedNode[] = names.map((node) => ({
    node,
    condition: "Ready",
    isCordoned: false,
    hasAgent: true,
  }));
  let listProblem: Error | undefined;
  const source: Pick<PageSource, "nodes" | "connect"> = {
    async nodes() {
      if (listProblem) throw listProblem;
      return { nodes };
    },
    async connect(node) {
      reads.push({ node, at: clock.monotonic() });
      most = Math.max(most, ++running);
      const connection: Pick<AgentConnection, "get"> = {
        get: async (path) => {
          if (path === "node") await clock.sleep(tookMs(node));
          if (silent.has(node)) throw new NodekeeperError("unavailable", "no answer");
          return answers[path] as never;
        },
      };
      return { ...connection, [Symbol.dispose]: () => void running-- };
    },
  };
  const reader = new FleetReader({ source, clock, parallel });
  const stop = new AbortController();
  void reader.run(stop.signal);
  /** Lets time pass while a page looks. */
  const watch = async (ms: number, shown: readonly string[] = []) => {
    for (let left = ms; left > 0; left -= 1_000) {
      reader.update({ epoch: 0, version: 0, shown });
      await clock.step(Math.min(left, 1_000));
    }
  };
  return {
    ...{ clock, reader, reads, watch },
    most: () => most,
    list: (next: ListedNode[]) => (nodes = next),
    failList: (error: Error | undefined) => (listProblem = error),
    readsOf: (node: string) => reads.filter((read) => read.node === node).length,
  };
}

const namesOf = (count: number) =>
  Array.from({ length: count }, (_, at) => `n${String(at).padStart(3, "0")}`);
const all = { epoch: 0, version: 0, shown: [] };

it("reads the nodes that are shown first, then the others, each once before any is read again", async () => {
  const names = namesOf(100);
  const shown = names.slice(90);
  const { watch, reads } = setUp({ names });
  await watch(20_000, shown);
  const order = reads.map(({ node }) => node);
  expect(order.slice(0, 10).sort()).toEqual(shown);
  expect(new Set(order.slice(0, 100)).size).toBe(100);
  expect(order.length).toBeGreaterThan(110);
});

it("reads shown nodes every five seconds and others once a minute", async () => {
  const { watch, readsOf } = setUp({ names: ["a", "b"] });
  await watch(120_000, ["a"]);
  expect(readsOf("a")).toBeGreaterThan(20);
  expect(readsOf("a")).toBeLessThan(26);
  expect(readsOf("b")).toBe(2);
});

it("with too many nodes for its pace reads at most five of them a second again, and omits none", async () => {
  const names = namesOf(600);
  const shown = names.slice(0, 50);
  const { watch, reads } = setUp({ names });
  await watch(90_000, shown);
  const before = reads.length;
  await watch(300_000, shown);
  expect(reads.length - before).toBeLessThanOrEqual(1_500);
  const again = new Set(reads.slice(before).map(({ node }) => node));
  expect(again.size).toBe(600);
});

it("reads nothing while no page asks", async () => {
  const { watch, clock, reads } = setUp({ names: ["a"] });
  await clock.step(60_000);
  expect(reads).toEqual([]);
  await watch(5_000);
  expect(reads.length).toBe(1);
  await clock.step(300_000);
  expect(reads.length).toBe(1);
});

it("does not exceed its concurrency, and agents that do not answer take at most half of it", async () => {
  const names = namesOf(40);
  const silent = new Set(names.slice(0, 20));
  const { watch, most, reads } = setUp({
    ...{ names, parallel: 4, silent },
    tookMs: (node) => (silent.has(node) ? 30_000 : 100),
  });
  await watch(600_000);
  expect(most()).toBe(4);
  const later = reads.filter(({ at }) => at > 300_000);
  // One reading a minute, though twenty of half a minute each would take all four places for 150 s.
  const ofOthers = later.filter(({ node }) => !silent.has(node));
  expect(ofOthers.length).toBeGreaterThanOrEqual(20 * 4);
});

it("agents of nodes that are not ready do not delay the first reading of the others", async () => {
  const names = namesOf(20);
  const { watch, reads, list } = setUp({
    ...{ names, parallel: 4 },
    tookMs: (node) => (node < "n010" ? 30_000 : 100),
  });
  list(names.map((node) => ({ node, hasAgent: true, condition: node < "n010" ? "NotReady" : "Ready" })));
  await watch(10_000);
  expect(new Set(reads.map(({ node }) => node)).size).toBe(12);
});

it("tells only what has changed, keeps the last answer of an agent that is silent, and says why", async () => {
  const silent = new Set<string>();
  const { watch, reader } = setUp({ names: ["a", "b"], silent });
  await watch(5_000, ["a", "b"]);
  const { nodes, epoch, version } = reader.update(all);
  expect(nodes.map(({ node, reading }) => [node, reading?.version])).toEqual([
    ["a", "1"],
    ["b", "1"],
  ]);
  silent.add("b");
  await watch(8_000, ["b"]);
  const changed = reader.update({ epoch, version, shown: [] });
  expect(changed.nodes).toEqual([expect.objectContaining({ node: "b", problem: "no answer" })]);
  expect(changed.nodes[0]!.reading).toBeDefined();
});

it("adds and removes nodes; those that are gone are told by a new epoch", async () => {
  const { watch, reader, list } = setUp({ names: ["a", "b"] });
  await watch(2_000);
  const before = reader.update(all);
  const node = (name: string, more: Partial<ListedNode> = {}) => ({ node: name, hasAgent: true, ...more });
  list([node("a", { condition: "NotReady" }), node("c")]);
  await watch(61_000);
  const after = reader.update({ ...before, shown: [] });
  expect(after.epoch).not.toBe(before.epoch);
  expect(after.nodes.map(({ node }) => node)).toEqual(["a", "c"]);
  expect(after.nodes[0]).toMatchObject({ condition: "NotReady", reading: { version: "1" } });
});

it("has a node that is gone from the archive, without what its agent answered", async () => {
  const { watch, reader, list } = setUp({ names: ["a"] });
  await watch(2_000);
  const gone = { node: "a", hasAgent: false, archived: { oldest: 1, newest: 2 } };
  list([gone]);
  await watch(61_000);
  expect(reader.update(all).nodes).toEqual([gone]);
});

it("keeps the nodes while they can't be listed, and says why", async () => {
  const { watch, reader, failList } = setUp({ names: ["a"] });
  await watch(2_000);
  failList(new Error("the server is down"));
  await watch(61_000);
  const update = reader.update(all);
  expect(update.problem).toBe("the server is down");
  expect(update.nodes.length).toBe(1);
  failList(undefined);
  await watch(61_000);
  expect(reader.update(all).problem).toBeUndefined();
});
