import { NodekeeperError } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { customNodeResource, node } from "./kinds.ts";
import { away, last, refuseNext, refusePoison, setUp, statusOf } from "./testing/writer-setup.ts";

it("writes immediately when the watch is open again after an outage", async () => {
  const { clock, server, applies, watches, report, publisher } = await setUp();
  await report("p", "old");
  server.fault = away;
  await report("p", "new");
  await clock.step(120_000);
  const tries = applies.length;
  server.fault = () => undefined;
  watches[0]!.handler.onOpen?.();
  await clock.step(100);
  expect(applies.length).toBe(tries + 1);
  expect(publisher.status()[0]).toMatchObject({ pending: false, lastError: undefined });
});

it("waits as long as the server requested, although its watch is open", async () => {
  const { clock, server, applies, watches, report } = await setUp();
  await report("p", "old");
  server.fault = () => new NodekeeperError("throttled", "too much", { retryAfterMs: 200_000 });
  await report("p", "new");
  const tries = applies.length;
  watches[0]!.handler.onOpen?.();
  await clock.step(199_000);
  expect(applies.length).toBe(tries);
});

it("watches a Node that does not exist at the start, and writes when it is created", async () => {
  const { clock, server, applies, watches, report } = await setUp();
  await report("p", "x", node);
  await clock.step(120_000);
  expect(applies).toEqual([]);
  expect(watches.map(({ kind }) => kind)).toEqual(["Node"]);
  server.live = { metadata: { name: "n1", uid: "u" } };
  watches[0]!.handler.onUpsert(server.live);
  await clock.step(100);
  expect(applies).toHaveLength(1);
});

it("backs off for a plugin whose changing content is always rejected, and publishes the others", async () => {
  const { clock, server, applies, report } = await setUp();
  server.fault = refusePoison;
  await report("bad", "good");
  await report("neighbour", "n0");
  const before = applies.length;
  for (let at = 0; at < 300; at++) {
    await report("bad", `poison-${at}`);
    await clock.step(900);
  }
  // Five minutes, with three to four requests per attempt.
  expect(applies.length - before).toBeLessThan(60);
  await report("neighbour", "n1");
  expect(last(applies)).toContain("n1");
  await report("bad", "fixed");
  await clock.step(60_000);
  expect(applies.filter(({ body, dryRun }) => !dryRun && body.includes("fixed"))).not.toEqual([]);
});

it("retries unchanged content later, since the server's rules may have changed", async () => {
  const { clock, server, applies, report, publisher } = await setUp();
  server.fault = refusePoison;
  await report("bad", "poison");
  expect(publisher.status()[0]?.quarantined).toHaveProperty("bad");
  server.fault = () => undefined;
  await clock.step(601_000);
  expect(last(applies)).toContain("poison");
  expect(publisher.status()[0]?.quarantined).toEqual({});
});

it("applies a part again each resync interval, although the other one changes all the time", async () => {
  const { clock, applies, report } = await setUp();
  await report("labels", "x", customNodeResource);
  for (let minute = 0; minute < 130; minute++) {
    await report("p", `v${minute}`);
    await clock.step(59_900);
  }
  const main = applies.filter(({ body }) => !body.includes('"status"'));
  // At the start, after one hour, and after two.
  expect(main).toHaveLength(3);
});

it("withdraws no accepted content of a plugin because the server refuses it once", async () => {
  const { clock, server, applies, report, publisher } = await setUp();
  await report("a", "a1");
  await report("b", "b1");
  const before = applies.length;
  server.fault = refuseNext(2, /"b1"/);
  await report("a", "a2");
  await clock.step(10_000);
  expect(statusOf(applies)).toEqual({ a: "a2", b: "b1" });
  const written = applies.slice(before).filter(({ dryRun }) => !dryRun);
  expect(written.filter(({ body }) => !body.includes("b1"))).toEqual([]);
  expect(publisher.status()[0]?.quarantined).toEqual({});
});

it("quarantines accepted content that the server refuses again and again, since its rules have changed", async () => {
  const { clock, server, applies, report, publisher } = await setUp();
  await report("a", "a1");
  await report("b", "b1");
  server.fault = (body) =>
    body.includes("b1") ? new NodekeeperError("invalid", "b1 is too old") : undefined;
  await report("a", "a2");
  await clock.step(60_000);
  expect(statusOf(applies)).toEqual({ a: "a2" });
  expect(publisher.status()[0]?.quarantined).toEqual({ b: expect.stringContaining("too old") });
});
