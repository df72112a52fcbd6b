import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { useApiNode } from "./support/api-node.ts";
import { EventStreamClient } from "./support/event-stream.ts";
import { startGoodPlugin, widgets } from "./support/plugins.ts";

const node = useApiNode();
const { ask, url } = node;

describe("the marks", () => {
  it("has marks of a timeline, in pages and of a time", async () => {
    const kindsOf = (items: { kind: string }[]) => items.map(({ kind }) => kind);
    await eventually(async () => {
      const { body } = await ask("marks");
      expect(kindsOf(body.items)).toEqual(
        expect.arrayContaining(["pluginRegistered", "conditionSet", "taintAdded", "evictionEnded"]),
      );
    });
    const { items } = (await ask("marks")).body;
    expect(items[0]).toMatchObject({ kind: "agentStarted", title: "agent 0.0.0-test started" });
    const selected = items.find(({ kind }: { kind: string }) => kind === "evictionSelected");
    expect(selected).toMatchObject({
      plugin: "pressure",
      pod: { name: "victim" },
      round: expect.any(Number),
    });
    const { body: page } = await ask("marks?limit=2");
    const { body: rest } = await ask(`marks?after=${page.next}`);
    expect([...page.items, ...rest.items].slice(0, items.length)).toEqual(items);
    expect((await ask(`marks?since=${selected.at}&until=${selected.at}`)).body.items).toContainEqual(
      selected,
    );
    expect((await ask("marks?until=5")).body).toEqual({ items: [], oldest: expect.any(Number), gaps: [] });
  });
});

describe("the stream", () => {
  const streams: EventStreamClient[] = [];
  const open = async (query = "", headers = {}) => {
    // The server may not have noticed yet that those of the test before have ended.
    const stream = await until("a place for a stream", async () => {
      const opened = await EventStreamClient.open(url(`stream${query}`), headers);
      if (opened.response.status !== 429) return opened;
      await opened.ended;
      return undefined;
    });
    streams.push(stream);
    return stream;
  };
  afterEach(async () => {
    for (const stream of streams.splice(0)) {
      await stream.close();
      for (const { event, data } of stream.events) node.contract.checkEvent(event, data);
    }
  });

  it("sends all states at the start, and what changes", async () => {
    const stream = await open();
    expect(stream.response.headers.get("content-type")).toBe("text/event-stream");
    expect(stream.response.headers.get("cache-control")).toBe("no-store");
    for (const name of [
      "open",
      "node",
      "plugins",
      "objects",
      "devices",
      "claims",
      "eviction/node",
      "eviction/budgets",
      "eviction/candidates",
      "readings",
    ])
      await stream.untilEvent(name);
    node.reporters[0]!.say(widgets("alpha", 4));
    const before = stream.of("objects").length;
    await until("objects are sent again", () => stream.of("objects").length > before);
    node.runtime.exit(node.containers.get("two")!, 4);
    await stream.untilEvent("events", ({ event }) => event.pod.name === "two" && event.exitCode === 4);
  });

  it("sends marks in order, each once, and continues after the last that a client had", async () => {
    const first = await open("?topics=marks");
    await first.untilEvent("open");
    const late = await startGoodPlugin(node.agent.pluginDir, "late", widgets("late", 1));
    await first.untilEvent("marks", ({ plugin }) => plugin === "late");
    await first.close();
    await late.stop();
    await eventually(async () => {
      const { items } = (await ask("marks")).body;
      expect(items).toContainEqual(expect.objectContaining({ kind: "pluginLost", plugin: "late" }));
    });
    const second = await open(`?topics=marks&cursor=${first.lastId}`);
    await second.untilEvent("marks", ({ kind, plugin }) => kind === "pluginLost" && plugin === "late");
    const ids = [...first.of("marks"), ...second.of("marks")].map(({ data }) => data.id);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("continues after the last event that a client had, each once", async () => {
    const first = await open("?topics=events,rounds");
    await first.untilEvent("open");
    node.runtime.startContainer(
      node.runtime.createContainer(node.runtime.sandboxesOf("uid-one")[0]!.id, { name: "a" }),
    );
    await first.untilEvent("events", ({ event }) => event.container?.name === "a");
    const { lastId } = first;
    await first.close();
    node.runtime.startContainer(
      node.runtime.createContainer(node.runtime.sandboxesOf("uid-one")[0]!.id, { name: "b" }),
    );
    const { body } = await ask("events");
    await until("it is in the log", async () => (await ask(`events?cursor=${body.cursor}`)).body.end);
    const second = await open("?topics=events,rounds", { "last-event-id": lastId });
    await second.untilEvent("events", ({ event }) => event.container?.name === "b");
    const third = await open(`?topics=events,rounds&cursor=${lastId}`);
    await third.untilEvent("events", ({ event }) => event.container?.name === "b");
    for (const { events } of [second, third]) {
      const names = events.flatMap(({ event, data }) =>
        event === "events" ? [data.event.container?.name] : [],
      );
      expect(names.filter((name) => name === "a" || name === "b")).toEqual(["b"]);
    }
  });

  it("sends a snapshot for a cursor of another log, and rounds of a new state directory from the first", async () => {
    const stream = await open("?topics=events,rounds&cursor=another-5.99999999.-");
    expect((await stream.untilEvent("snapshot")).data.pods).toHaveLength(3);
    expect((await stream.untilEvent("rounds")).data.id).toBe(1);
  });

  it.each([
    ["?topics=nothing", 400],
    ["?topics=events,", 400],
    ["?cursor=nonsense", 400],
    ["?topcis=events", 400],
  ])("refuses %s", async (query, status) => {
    const response = await fetch(url(`stream${query}`));
    expect(response.status).toBe(status);
    node.contract.check("version", await response.json(), "default");
  });

  it("refuses streams beyond 16, and serves others again when one ends", async () => {
    const all = await Promise.all(Array.from({ length: 16 }, () => open("?topics=node")));
    const refused = await fetch(url("stream"));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "2"]);
    expect((await ask("version")).status).toBe(200);
    await all[0]!.close();
    await eventually(async () => {
      const again = await open("?topics=node");
      expect(again.response.status).toBe(200);
      await again.untilEvent("node");
    });
  });

  it("continues after the last event that a client had when the agent was restarted", async () => {
    const sandbox = node.runtime.sandboxesOf("uid-three")[0]!.id;
    const first = await open("?topics=events,rounds");
    await first.untilEvent("open");
    node.runtime.startContainer(node.runtime.createContainer(sandbox, { name: "before" }));
    await first.untilEvent("events", ({ event }) => event.container?.name === "before");
    const { lastId } = first;
    await node.agent.stop();
    await first.ended;
    node.runtime.startContainer(node.runtime.createContainer(sandbox, { name: "meanwhile" }));
    await node.start();
    const second = await open("?topics=events,rounds", { "last-event-id": lastId });
    await second.untilEvent("events", ({ event }) => event.container?.name === "meanwhile");
    expect(second.of("snapshot")).toEqual([]);
    const names = second.of("events").map(({ data }) => data.event.container?.name);
    expect(names.filter((name) => name === "before")).toEqual([]);
    const rounds = second.of("rounds").map(({ data }) => data.id);
    expect(new Set(rounds).size).toBe(rounds.length);
    const starts = (await ask("marks")).body.items.filter(({ kind }: { kind: string }) =>
      /^agent/.test(kind),
    );
    expect(starts.map(({ kind }: { kind: string }) => kind)).toEqual([
      "agentStarted",
      "agentStopped",
      "agentStarted",
    ]);
  });
});
