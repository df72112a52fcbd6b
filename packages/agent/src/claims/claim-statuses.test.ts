import { DeviceStatusNotWritten } from "@nodekeeper/api/errors";
import {
  type DeepPartial,
  DeviceStatus,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { childScope, FakeClock, NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { ClaimStatusStore } from "../state/index.ts";
import { ClaimProblems } from "./claim-problems.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type StatusOutcome, statusManager } from "./claim-status-api.ts";
import { ClaimStatuses } from "./claim-statuses.ts";
import { allocationKey, type ClaimToBind } from "./claim-to-bind.ts";
import type { StatusEntry } from "./device-status.ts";
import type { WantedEntries } from "./reported-statuses.ts";
import { ClaimWorld, DRIVER, NODE, recordedDevice } from "./testing/claim-world.ts";

/** The API server's claims by name, with the entries of our field manager. */
class StatusServer {
  readonly entries = new Map<string, readonly StatusEntry[]>();
  readonly writes: string[] = [];
  fault: ((claim: ClaimReference) => void) | undefined;
  drops = false;

  /** Results of the allocation, by name of the claim. */
  readonly allocated = new Map<string, object[]>();
  /** When claims were allocated, in wall milliseconds, by name. Default: 1. */
  readonly allocatedAt = new Map<string, number>();

  async apply(claim: ClaimReference, wanted: WantedEntries): Promise<StatusOutcome> {
    const entries = typeof wanted === "function" ? wanted(this.claim(claim)) : wanted;
    if (!entries) return "kept";
    this.writes.push(claim.name);
    this.fault?.(claim);
    if (!this.drops) this.entries.set(claim.name, entries);
    if (entries.length === 0) return "removed";
    return this.drops ? "dropped" : "stored";
  }

  claim({ name, uid }: ClaimReference): KubeObject {
    const results = this.allocated.get(name);
    const allocationTimestamp = new Date(this.allocatedAt.get(name) ?? 1).toISOString();
    const allocation = results && { allocationTimestamp, devices: { results } };
    return { metadata: { name, uid }, status: { allocation, devices: [...(this.entries.get(name) ?? [])] } };
  }

  devices(name: string): string[] {
    return (this.entries.get(name) ?? []).map(({ device }) => device);
  }
}

async function setUp(names: readonly string[]) {
  const world = new ClaimWorld();
  const records = world.records();
  const server = new StatusServer();
  const clock = new FakeClock();
  const claims = names.map((name) => world.claim(name, "nic-0"));
  for (const claim of claims)
    await records.save(DRIVER, claim, {
      state: "prepared",
      devices: [recordedDevice("nic-0")],
      cdi: "",
      pods: [],
    });
  /** An agent with the state of those before it. */
  const start = () => {
    const store = new ClaimStatusStore(world.database);
    const problems = new ClaimProblems({ records, drivers: { setClaimProblems: () => {} } });
    const common = { nodeName: NODE, problems, records, store, api: server, clock, log: silentLogger };
    const statuses = new ClaimStatuses(common);
    const scope = childScope();
    const running = statuses.run(scope.signal);
    const stop = async () => {
      scope.abort();
      await running;
    };
    return { statuses, problems, stop, stored: () => store.claims().map(({ name }) => name) };
  };
  return { world, records, server, clock, claims, start };
}

const entry = ({ uid }: ClaimReference, more: DeepPartial<DeviceStatus> = {}): DeviceStatus =>
  DeviceStatus.fromPartial({ claimUid: uid, device: "nic-0", ...more });
/** Lets everything happen that needs no time. */
const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
};

it("an agent that was killed after it recorded a claim removes what it may have written", async () => {
  const { world, records, server, claims, start } = await setUp(["one"]);
  using _world = world;
  const first = start();
  first.statuses.reported(
    DRIVER,
    claims.map((claim) => entry(claim)),
  );
  await until("written", () => server.devices("one").length === 1);
  await first.stop();
  await records.remove(DRIVER, claims[0]!.uid);
  const second = start();
  await until("removed", () => second.stored().length === 0);
  expect(server.devices("one")).toEqual([]);
  await second.stop();
});

it("the last status stays until the driver has reported to a new agent, which then withdraws what is left out", async () => {
  const { world, server, claims, start } = await setUp(["one", "two"]);
  using _world = world;
  const first = start();
  first.statuses.reported(
    DRIVER,
    claims.map((claim) => entry(claim)),
  );
  await until("written", () => server.entries.size === 2);
  await first.stop();
  const second = start();
  await settle();
  expect(server.writes).toHaveLength(2);
  second.statuses.reported(DRIVER, [entry(claims[0]!)]);
  await until("left out", () => server.devices("two").length === 0);
  expect(server.devices("one")).toEqual(["nic-0"]);
  // Such as by a driver that was updated to one without status.
  second.statuses.withdrawn(DRIVER);
  await until("withdrawn", () => second.stored().length === 0);
  expect(server.devices("one")).toEqual([]);
  await second.stop();
});

it("a status that is reported before its claim is prepared is written when it is", async () => {
  const { world, records, server, claims, start } = await setUp(["one"]);
  using _world = world;
  const [claim] = claims as [ClaimReference];
  const recorded = { devices: [recordedDevice("nic-0")], cdi: "", pods: [] };
  await records.save(DRIVER, claim, { state: "preparing", ...recorded });
  const { statuses, stop } = start();
  statuses.reported(DRIVER, [entry(claim)]);
  await settle();
  expect(server.writes).toEqual([]);
  await records.save(DRIVER, claim, { state: "prepared", ...recorded });
  await until("written", () => server.devices("one").length === 1);
  await stop();
});

it("a claim that was deleted is forgotten, and one whose field another client owns does not hold up the others", async () => {
  const { world, server, claims, start } = await setUp(["gone", "owned", "free"]);
  using _world = world;
  server.fault = ({ name }) => {
    if (name === "gone") throw new NodekeeperError("notFound", "no such claim");
    if (name === "owned")
      throw new DeviceStatusNotWritten({ problem: 'conflict with "someone-else"' }, { code: "conflict" });
  };
  const { statuses, stop, stored } = start();
  statuses.reported(
    DRIVER,
    claims.map((claim) => entry(claim)),
  );

  await until("the others", () => server.writes.length === 3);
  await settle();
  expect(server.devices("free")).toEqual(["nic-0"]);
  expect(stored().sort()).toEqual(["free", "owned"]);
  expect(statuses.problemOf(DRIVER)).toContain('conflict with "someone-else"');
  await stop();
});

it("a server that drops the field, or forbids it, is asked again after five minutes, whatever is reported", async () => {
  const { world, server, clock, claims, start } = await setUp(["one"]);
  using _world = world;
  const [claim] = claims as [ClaimReference];
  const { statuses, stop } = start();
  server.drops = true;
  statuses.reported(DRIVER, [entry(claim)]);
  await until("dropped", () => statuses.problemOf(DRIVER)?.includes("DRAResourceClaimDeviceStatus"));
  for (let change = 0; change < 10; change++) {
    statuses.reported(DRIVER, [entry(claim, { data: `{"change":${change}}` })]);
    await settle();
    await clock.step(10_000);
  }
  expect(server.writes).toHaveLength(1);
  server.drops = false;
  server.fault = () => {
    throw new DeviceStatusNotWritten({ problem: "may not patch" });
  };
  await clock.step(300_000);
  await until("forbidden", () => statuses.problemOf(DRIVER) === "may not patch");
  expect(server.writes).toHaveLength(2);
  server.fault = undefined;
  await clock.step(300_000);
  await until("written", () => server.entries.get("one")?.[0]?.data?.change === 9);
  expect(statuses.problemOf(DRIVER)).toBeUndefined();
  await stop();
});

it("a flood of changes is paced, and ends with the last of them", async () => {
  const names = Array.from({ length: 30 }, (_, number) => `claim-${number}`);
  const { world, server, clock, claims, start } = await setUp(names);
  using _world = world;
  const { statuses, stop } = start();
  for (let change = 0; change < 10; change++) {
    statuses.reported(
      DRIVER,
      claims.map((claim) => entry(claim, { data: `{"change":${change}}` })),
    );
    await settle();
  }
  expect(server.writes.length).toBeLessThanOrEqual(20);
  for (let second = 0; second < 10; second++) {
    await clock.step(1_000);
    await settle();
  }
  expect(server.writes.length).toBeLessThanOrEqual(70);
  expect(names.map((name) => server.entries.get(name)?.[0]?.data)).toEqual(names.map(() => ({ change: 9 })));
  await stop();
});

it("a driver that reports thousands of claims that do not exist holds up no other", async () => {
  const { world, server, claims, start } = await setUp(["one"]);
  using _world = world;
  const { statuses, stop } = start();
  const unknown = Array.from({ length: 20_000 }, (_, number) => ({
    ...claims[0]!,
    uid: `unknown-${number}`,
  }));
  for (const driver of ["first.example.com", "second.example.com"]) {
    statuses.reported(
      driver,
      unknown.map((claim) => entry(claim)),
    );
    statuses.reported(
      driver,
      unknown.map((claim) => entry(claim, { data: "{}" })),
    );
  }
  statuses.reported(
    DRIVER,
    claims.map((claim) => entry(claim)),
  );
  await until("written", () => server.devices("one").length === 1);
  expect(statuses.problemOf("first.example.com")).toContain("no such claim is prepared");
  await stop();
});

const binding = { ...recordedDevice("nic-0"), bindingConditions: ["Attached"] };
const toBind = (claim: ClaimReference, allocatedAt = 1): ClaimToBind => ({
  ...claim,
  pods: [],
  devices: [binding],
  allocatedAt,
});
/** Keys of the first allocations of claims. */
const told = (...claims: ClaimReference[]) => keysOf(...claims.map((claim) => toBind(claim)));
const keysOf = (...claims: ClaimToBind[]) =>
  new Map(claims.map((claim) => [claim.uid, allocationKey(claim)]));

it("a claim that waits to be bound has a status, which stays from then on until the claim is deallocated", async () => {
  const { world, records, server, clock, start } = await setUp([]);
  using _world = world;
  const claim = world.claim("one", "nic-0");
  server.allocated.set("one", [{ ...binding, driver: DRIVER }]);
  const history: string[][] = [];
  const first = start();
  const report = [entry(claim)];
  first.statuses.reported(DRIVER, report);
  await settle();
  expect(server.writes).toEqual([]);
  first.statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  await until("written", () => server.devices("one").length === 1);
  // The pod is bound, and the kubelet does not call before the agent is started again.
  first.statuses.toBind(DRIVER, [], told());
  await settle();
  history.push(server.devices("one"));
  await first.stop();
  const second = start();
  await settle();
  history.push(server.devices("one"));
  second.statuses.reported(DRIVER, report);
  await settle();
  expect(second.statuses.problemOf(DRIVER)).toBeUndefined();
  const recorded = { devices: [{ ...binding, cdiDeviceIds: [] }], cdi: "", pods: [] };
  for (const state of ["preparing", "prepared", "unpreparing"] as const) {
    await records.save(DRIVER, claim, { state, ...recorded });
    await settle();
    history.push(server.devices("one"));
  }
  await records.remove(DRIVER, claim.uid);
  await settle();
  history.push(server.devices("one"));
  expect(history).toEqual(history.map(() => ["nic-0"]));
  expect(second.stored()).toEqual(["one"]);
  second.statuses.reported(DRIVER, [entry(claim, { data: '{"of":"later"}' })]);
  await until("changed at once", () => server.entries.get("one")?.[0]?.data?.of === "later");
  server.allocated.delete("one");
  await clock.step(60_000);
  await until("removed", () => second.stored().length === 0);
  expect(server.devices("one")).toEqual([]);
  await second.stop();
});

it.each<[state: "preparing" | "prepared" | "unpreparing", unprepared: string[]]>([
  ["preparing", ["one"]],
  ["prepared", []],
  ["unpreparing", []],
])("a claim that an agent before left %s", async (state, unprepared) => {
  const { world, records, server, start } = await setUp([]);
  using _world = world;
  const claim = world.claim("one", "nic-0");
  server.allocated.set("one", [{ ...binding, driver: DRIVER }]);
  const first = start();
  first.statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  first.statuses.reported(DRIVER, [entry(claim)]);
  await until("written", () => server.devices("one").length === 1);
  await records.save(DRIVER, claim, {
    state,
    devices: [{ ...binding, cdiDeviceIds: [] }],
    cdi: "",
    pods: [],
  });
  await first.stop();
  const { statuses, stop } = start();
  expect(statuses.unprepared().map(({ name }) => name)).toEqual(unprepared);
  await stop();
});

it("what was reported of an earlier allocation is not written for a later one, though it has the same device", async () => {
  const { world, server, start } = await setUp([]);
  using _world = world;
  const claim = world.claim("one", "nic-0");
  server.allocated.set("one", [{ ...binding, driver: DRIVER }]);
  const { statuses, problems, stop } = start();
  statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  statuses.reported(DRIVER, [entry(claim)]);
  await until("written", () => server.devices("one").length === 1);
  // Deallocated, by which the API server removes the entry, and allocated the same device again.
  server.entries.delete("one");
  server.allocatedAt.set("one", 2);
  statuses.toBind(DRIVER, [toBind(claim, 2)], told(claim));
  await settle();
  statuses.reported(DRIVER, [entry(claim, { data: '{"of":"earlier"}' })]);
  await settle();
  expect(server.devices("one")).toEqual([]);
  expect(problems.of(DRIVER)).toEqual([]);
  statuses.renewed(DRIVER, [claim.uid]);
  statuses.toBind(DRIVER, [toBind(claim, 2)], keysOf(toBind(claim, 2)));
  await settle();
  expect(server.devices("one")).toEqual([]);
  // Equal to the report of before: the driver says it of this allocation.
  statuses.reported(DRIVER, [entry(claim, { data: '{"of":"earlier"}' })]);
  await until("written again", () => server.devices("one").length === 1);
  await stop();
});

it("what was reported of an allocation is not written to a claim that was allocated anew before the agent has seen it", async () => {
  const { world, server, start } = await setUp([]);
  using _world = world;
  const claim = world.claim("one", "nic-0");
  server.allocated.set("one", [{ ...binding, driver: DRIVER }]);
  server.allocatedAt.set("one", 2);
  const { statuses, stop } = start();
  statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  statuses.reported(DRIVER, [entry(claim)]);
  await settle();
  expect(server.writes).toEqual([]);
  statuses.toBind(DRIVER, [toBind(claim, 2)], keysOf(toBind(claim, 2)));
  await until("written once it was told of that allocation", () => server.devices("one").length === 1);
  await stop();
});

it("the status of an agent before stays until the driver has reported it again", async () => {
  const { world, server, start } = await setUp([]);
  using _world = world;
  const claim = world.claim("one", "nic-0");
  server.allocated.set("one", [{ ...binding, driver: DRIVER }]);
  const first = start();
  first.statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  first.statuses.reported(DRIVER, [entry(claim)]);
  await until("written", () => server.devices("one").length === 1);
  await first.stop();
  const { statuses, stop } = start();
  // Of a driver that does not know the claim yet.
  statuses.renewed(DRIVER, [claim.uid]);
  statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  await settle();
  expect(server.devices("one")).toEqual(["nic-0"]);
  statuses.reported(DRIVER, []);
  await until("withdrawn", () => server.devices("one").length === 0);
  await stop();
});

it("what a driver reports before it was told of allocations removes no status of claims that wait", async () => {
  const { world, records, server, claims, start } = await setUp(["prepared"]);
  using _world = world;
  const [prepared] = claims as [ClaimReference];
  const claim = world.claim("one", "nic-0");
  server.allocated.set("one", [{ ...binding, driver: DRIVER }]);
  const first = start();
  first.statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  first.statuses.reported(DRIVER, [entry(claim), entry(prepared)]);
  await until("written", () => server.entries.size === 2);
  // The driver was restarted, and its calls fail.
  first.statuses.untold(DRIVER);
  first.statuses.reported(DRIVER, []);
  await until("withdrawn", () => server.devices("prepared").length === 0);
  expect(server.devices("one")).toEqual(["nic-0"]);
  await first.stop();
  // The claims are not known yet.
  const { statuses, stop, stored } = start();
  statuses.untold(DRIVER);
  statuses.reported(DRIVER, []);
  await settle();
  expect(server.devices("one")).toEqual(["nic-0"]);
  statuses.renewed(DRIVER, [claim.uid]);
  statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  await settle();
  expect(server.devices("one")).toEqual(["nic-0"]);
  statuses.reported(DRIVER, []);
  await until("it was told", () => server.devices("one").length === 0);
  // One that was deallocated, and one that was unprepared, are let go of nevertheless.
  statuses.reported(DRIVER, [entry(claim), entry(prepared)]);
  await until("written again", () => stored().length === 2);
  statuses.untold(DRIVER);
  server.allocated.delete("one");
  server.entries.delete("one");
  statuses.toBind(DRIVER, [], told());
  await records.remove(DRIVER, prepared.uid);
  await until("let go", () => stored().length === 0);
  expect(server.devices("prepared")).toEqual([]);
  await stop();
});

it("a claim with a record of an earlier allocation has the status of the devices that it waits for", async () => {
  const { world, server, claims, start } = await setUp(["one"]);
  using _world = world;
  const [claim] = claims as [ClaimReference];
  const { statuses, problems, stop } = start();
  const later = { ...toBind(claim), devices: [{ ...binding, device: "nic-1" }] };
  server.allocated.set("one", [{ ...later.devices[0], driver: DRIVER }]);
  statuses.toBind(DRIVER, [later], keysOf(later));
  statuses.reported(DRIVER, [entry(claim, { device: "nic-1" })]);
  await until("written", () => server.devices("one").length === 1);
  expect(server.devices("one")).toEqual(["nic-1"]);
  expect(problems.of(DRIVER)).toEqual([]);
  await stop();
});

it("a claim with a forbidden field is held alone, unless the next one is refused, too", async () => {
  const { world, server, clock, claims, start } = await setUp(["one", "two"]);
  using _world = world;
  const { statuses, stop } = start();
  const refuse = (...names: string[]) => {
    server.fault = ({ name }) => {
      if (!names.includes(name)) return;
      throw new DeviceStatusNotWritten({ problem: "a field is forbidden" }, { code: "invalid" });
    };
  };
  const report = (data: string) =>
    statuses.reported(
      DRIVER,
      claims.map((claim) => entry(claim, { data })),
    );
  refuse("one");
  report("{}");
  await until("the other is written", () => server.devices("two").length === 1);
  expect(statuses.problemOf(DRIVER)).toContain("a field is forbidden");
  report('{"change":1}');
  await until("and again", () => server.entries.get("two")?.[0]?.data?.change === 1);
  expect(server.writes.filter((name) => name === "one")).toHaveLength(1);
  refuse("one", "two");
  await clock.step(300_000);
  report('{"change":2}');
  await until("both are refused", () => server.writes.length === 5);
  refuse();
  report('{"change":3}');
  await settle();
  expect(server.writes).toHaveLength(5);
  await clock.step(300_000);
  await until("written", () => claims.every(({ name }) => server.entries.get(name)?.[0]?.data?.change === 3));
  expect(statuses.problemOf(DRIVER)).toBeUndefined();
  await stop();
});

it("a status that was reported before its claim was recorded is no problem once it is", async () => {
  const { world, records, server, start } = await setUp([]);
  using _world = world;
  const { statuses, problems, stop } = start();
  const early = world.claim("early", "nic-0");
  statuses.reported(DRIVER, [
    entry(early),
    entry(early, { device: "nic-9" }),
    entry({ ...early, uid: "none" }),
  ]);
  const refused = () => problems.of(DRIVER).map(({ claimUid, device }) => `${claimUid} ${device}`);
  expect(refused()).toEqual(["uid-of-early nic-0", "uid-of-early nic-9", "none nic-0"]);
  const devices = [recordedDevice("nic-0")];
  await records.save(DRIVER, early, { state: "preparing", devices, cdi: "", pods: [] });
  expect(refused()).toEqual(["uid-of-early nic-9", "none nic-0"]);
  expect(statuses.problemOf(DRIVER)).toContain("nic-9");
  await records.save(DRIVER, early, { state: "prepared", devices, cdi: "", pods: [] });
  await until("written", () => server.devices("early").length === 1);
  statuses.reported(DRIVER, [entry(early)]);
  expect(refused()).toEqual([]);
  await stop();
});

it("field managers differ by driver and node, and have at most 128 characters", () => {
  expect(statusManager("nic.example.com", "worker-1")).toBe("nodekeeper/nic.example.com/worker-1");
  const long = ["a", "b"].map((end) => statusManager("d".repeat(63), `${"n".repeat(252)}${end}`));
  expect(new Set(long).size).toBe(2);
  for (const manager of long) expect(manager.length).toBeLessThanOrEqual(128);
});
