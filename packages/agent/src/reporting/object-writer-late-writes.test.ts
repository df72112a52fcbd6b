import { ApiStatusError, type KubeObject } from "@nodekeeper/core/kube";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { node } from "./kinds.ts";
import { away, last, setUp } from "./testing/writer-setup.ts";

it("applies again when a write whose response was lost can't arrive any more: it may have overwritten a later one", async () => {
  const { clock, server, applies, report } = await setUp();
  await report("p", "first");
  server.fault = () => new NodekeeperError("deadline", "no response within 10 s");
  await report("p", "old");
  server.fault = () => undefined;
  await report("p", "new");
  await clock.step(10_000);
  const before = applies.length;
  expect(last(applies)).toContain("new");
  await clock.step(60_000);
  expect(applies.slice(before).map(({ body }) => body)).toEqual([last(applies)]);
  expect(last(applies)).toContain("new");
  await clock.step(600_000);
  expect(applies).toHaveLength(before + 1);
});

it("withdraws again what a write whose response was lost may have published after the withdrawal", async () => {
  const { clock, server, applies, report, withdraw } = await setUp();
  await report("p", "first");
  server.fault = () => new NodekeeperError("deadline", "no response within 10 s");
  await report("p", "late");
  server.fault = () => undefined;
  server.live = { metadata: { name: "n1" } };
  await withdraw("p");
  await clock.step(10_000);
  const before = applies.length;
  expect(last(applies)).not.toContain("late");
  await clock.step(60_000);
  expect(applies).toHaveLength(before + 1);
  expect(last(applies)).not.toContain("late");
});

it("withdraws what the first write may have published, although its response was lost", async () => {
  const { clock, server, applies, report, withdraw } = await setUp();
  server.fault = (body) =>
    body.includes("first") ? new NodekeeperError("deadline", "no response within 10 s") : undefined;
  await report("p", "first");
  server.fault = () => undefined;
  server.live = { metadata: { name: "n1" } };
  const before = applies.length;
  await withdraw("p");
  await clock.step(10_000);
  expect(applies.slice(before).map(({ body }) => body.includes("first"))).toContain(false);
  expect(last(applies)).not.toContain("first");
});

it("takes a change once for one of another client, however long the repair fails", async () => {
  const { clock, server, watches, report, publisher, repairs } = await setUp();
  server.live = labelled("old", 0);
  server.fault = away;
  await report("p", "new", node);
  const { handler } = watches.find(({ kind }) => kind === "Node")!;
  for (let heartbeat = 0; heartbeat < 20; heartbeat++) {
    handler.onUpsert(labelled(undefined, 1));
    await clock.step(10_000);
  }
  expect(await repairs()).toBe(1);
  expect(publisher.status().flatMap(({ contested }) => contested)).toEqual([]);
});

it("does not take its own first write for one of another client, however late the response is", async () => {
  const { clock, server, applies, watches, report, repairs } = await setUp();
  server.live = labelled(undefined, 0);
  server.stored = () => labelled("new", 5);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.response = promise;
  await report("p", "new", node);
  watches.find(({ kind }) => kind === "Node")!.handler.onUpsert(labelled("new", 5));
  await clock.step(5_000);
  resolve();
  await clock.step(60_000);
  expect(applies).toHaveLength(1);
  expect(await repairs()).toBe(0);
});

it("takes back what a late write of an earlier agent process adds to a part that this one has not written", async () => {
  const { clock, server, applies, watches, report } = await setUp();
  server.live = labelled(undefined, 0);
  server.stored = () => labelled("new", 5);
  await report("p", "new", node);
  const before = applies.length;
  const arrived = {
    manager: "nodekeeper",
    operation: "Apply",
    subresource: "status",
    time: "2026-01-01T00:00:03Z",
    fieldsV1: { "f:status": { "f:capacity": { "f:example.com/widget": {} } } },
  };
  const { metadata } = labelled("new", 5);
  const managedFields = [...metadata.managedFields!, arrived];
  const status = { capacity: { "example.com/widget": "1" } };
  watches
    .find(({ kind }) => kind === "Node")!
    .handler.onUpsert({ metadata: { ...metadata, managedFields }, status });
  await clock.step(60_000);
  expect(applies.slice(before)).toHaveLength(1);
  expect(last(applies)).not.toContain("widget");
});

/** Returns the Node, with or without a label that the agent's field manager applied. */
function labelled(value: string | undefined, second: number): KubeObject {
  const managedFields = [
    {
      manager: "nodekeeper",
      operation: "Apply",
      time: `2026-01-01T00:00:0${second}Z`,
      fieldsV1: { "f:metadata": { "f:labels": { "f:l": {} } } },
    },
  ];
  const labels = { l: value };
  return {
    metadata: { name: "n1", ...(value === undefined ? {} : { labels, managedFields }) },
  } as KubeObject;
}

it.each([
  { what: "overwrites a value", arrives: labelled("old", 6), isRepaired: true },
  { what: "overwrites a value within the same second", arrives: labelled("old", 5), isRepaired: true },
  { what: "is seen late", arrives: labelled("old", 4), isRepaired: false },
])(
  "a write of an earlier agent process that $what: applied again $isRepaired",
  async ({ arrives, isRepaired }) => {
    const { clock, server, applies, watches, report } = await setUp();
    server.live = labelled(undefined, 0);
    server.stored = () => labelled("new", 5);
    await report("p", "new", node);
    const before = applies.length;
    watches.find(({ kind }) => kind === "Node")!.handler.onUpsert(arrives);
    await clock.step(60_000);
    expect(applies.length - before).toBe(isRepaired ? 1 : 0);
    expect(last(applies)).toContain("new");
  },
);

it("does not repeat a write whose values the API server normalises", async () => {
  const { clock, server, applies, watches, report } = await setUp();
  server.live = labelled(undefined, 0);
  server.stored = () => labelled("normalised", 5);
  await report("p", "new", node);
  const before = applies.length;
  watches.find(({ kind }) => kind === "Node")!.handler.onUpsert(labelled("normalised", 5));
  await clock.step(60_000);
  expect(applies).toHaveLength(before);
});

it("withdraws again what a write of an earlier agent process brings back after the withdrawal", async () => {
  const { clock, server, applies, watches, report, withdraw } = await setUp();
  server.live = labelled(undefined, 0);
  server.stored = () => labelled("first", 5);
  await report("p", "first", node);
  server.stored = () => labelled(undefined, 0);
  await withdraw("p", node);
  const before = applies.length;
  watches.find(({ kind }) => kind === "Node")!.handler.onUpsert(labelled("late", 6));
  await clock.step(60_000);
  expect(applies.length - before).toBe(1);
  expect(last(applies)).not.toContain("first");
});

it("does not apply again after an answer of the API server, which settles the write", async () => {
  const { clock, server, applies, report } = await setUp();
  await report("p", "first");
  const answer = { httpStatus: 503, summary: { reason: "", message: "busy", causes: [] } } as never;
  server.fault = () => new ApiStatusError("unavailable", "busy", answer, undefined);
  await report("p", "old");
  server.fault = () => undefined;
  await clock.step(10_000);
  const before = applies.length;
  await clock.step(600_000);
  expect(applies).toHaveLength(before);
});
