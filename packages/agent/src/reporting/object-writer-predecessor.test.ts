import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeObject } from "@nodekeeper/core/kube";
import { FakeClock, NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { ReporterStore, StateDatabase } from "../state/index.ts";
import { encodeContent, type PluginContent } from "./content.ts";
import { customNodeResource, kindKey } from "./kinds.ts";
import { contentOf, field, message } from "./testing/contents.ts";
import { refuseNext, refusePoison, setUp, statusOf } from "./testing/writer-setup.ts";

const predecessor: KubeObject = {
  metadata: {
    name: "n1",
    uid: "u",
    managedFields: [
      {
        manager: "nodekeeper",
        operation: "Apply",
        subresource: "status",
        fieldsV1: { "f:status": { "f:q": {}, "f:zones": { "f:a": {}, "f:b": {} } } },
      },
    ],
  },
  status: { q: "1", zones: { a: "1", b: "1", theirs: "1" }, theirs: "1" },
};

it("keeps fields published by an earlier agent until a plugin reports them, or for the grace period", async () => {
  const { clock, server, applies, report, publisher } = await setUp({ pluginGracePeriod: 300_000 });
  server.live = predecessor;
  await report("p", "x");
  expect(statusOf(applies)).toEqual({ p: "x", q: "1", zones: { a: "1", b: "1" } });
  expect(publisher.status()[0]?.unclaimed).toEqual(["status.q", "status.zones.a", "status.zones.b"]);
  await report("q", "2");
  expect(statusOf(applies)).toEqual({ p: "x", q: "2", zones: { a: "1", b: "1" } });
  await clock.step(290_000);
  expect(statusOf(applies)).toHaveProperty("zones");
  await clock.step(20_000);
  expect(statusOf(applies)).toEqual({ p: "x", q: "2" });
  expect(publisher.status()[0]?.unclaimed).toEqual([]);
});

it("removes fields published by an earlier agent if no plugin reports anything", async () => {
  const { clock, server, applies } = await setUp({ live: predecessor });
  await clock.step(1_000);
  expect(server.live).toBe(predecessor);
  expect(applies.filter(({ body }) => body.includes("CustomNodeResource"))).toHaveLength(1);
  expect(statusOf(applies)).toBeUndefined();
});

it("removes them although the object could not be read at the start, for example while permissions were missing", async () => {
  const { clock, server, applies } = await setUp({ live: predecessor });
  server.readFault = new NodekeeperError("forbidden", "403");
  await clock.step(30_000);
  expect(applies).toEqual([]);
  server.readFault = undefined;
  await clock.step(60_000);
  expect(applies.filter(({ body }) => body.includes("CustomNodeResource"))).toHaveLength(1);
  expect(statusOf(applies)).toBeUndefined();
});

it("reads an object that no plugin reports ever more rarely if it must not read it", async () => {
  const { clock, server } = await setUp();
  server.readFault = new NodekeeperError("forbidden", "403");
  await clock.step(3_600_000);
  // Of the CustomNodeResource and the Node.
  expect(server.reads).toBeLessThan(60);
});

it("reads an object at the next resync that it must not read, and whose kind is then no longer served", async () => {
  const { clock, server } = await setUp();
  server.readFault = new NodekeeperError("forbidden", "403");
  await clock.step(30_000);
  server.readFault = new NodekeeperError("unsupported", "not served");
  await clock.step(10_000);
  const before = server.reads;
  await clock.step(60_000);
  expect(server.reads).toBeLessThanOrEqual(before + 2);
});

/** Returns a state directory with last known good content, as a loss of power leaves it. */
function afterPowerLoss(status: PluginContent): string {
  const directory = mkdtempSync(join(tmpdir(), "nodekeeper-writer-"));
  const clock = new FakeClock();
  using database = StateDatabase.open({
    directory: join(directory, "before"),
    clock,
    log: silentLogger,
    bootId: "before",
  });
  const messages = new Map([["q", encodeContent(status)]]);
  new ReporterStore(database).saveLastGood(kindKey(customNodeResource), "status", messages);
  cpSync(join(directory, "before"), join(directory, "after"), { recursive: true });
  return join(directory, "after");
}

it("publishes for a rejected report what is published already, since stored content may be older after a power loss", async () => {
  const older = contentOf(message([field("status", "q", "0")], customNodeResource));
  const { server, applies, report } = await setUp({ directory: afterPowerLoss(older) });
  server.live = predecessor;
  server.fault = refusePoison;
  await report("q", "poison");
  expect(statusOf(applies)).toMatchObject({ q: "1" });
});

it("keeps fields published by an earlier agent although the server refuses them once, and names no plugin for it", async () => {
  const { clock, server, applies, report, publisher } = await setUp({ pluginGracePeriod: 300_000 });
  server.live = predecessor;
  // The write, and then the dry run of the same fields.
  server.fault = refuseNext(2, /"q"/);
  await report("p", "x");
  await clock.step(10_000);
  expect(statusOf(applies)).toEqual({ p: "x", q: "1", zones: { a: "1", b: "1" } });
  expect(
    applies.filter(({ body, dryRun }) => !dryRun && body.includes('"status"') && !body.includes('"q"')),
  ).toEqual([]);
  expect(publisher.status()[0]?.quarantined).toEqual({});
});
