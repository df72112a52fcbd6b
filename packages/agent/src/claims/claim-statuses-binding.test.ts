import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import type { ClaimReference } from "./claim-reader.ts";
import { allocationKey, type ClaimToBind } from "./claim-to-bind.ts";
import { DRIVER, NODE, recordedDevice } from "./testing/claim-world.ts";
import { entry, settle, setUp } from "./testing/status-world.ts";

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

it("an entry that another client has added after a deallocation makes no earlier report one of the later allocation", async () => {
  const { world, server, start } = await setUp([]);
  using _world = world;
  const claim = world.claim("one", "nic-0");
  server.allocated.set("one", [{ ...binding, driver: DRIVER }]);
  const { statuses, stored, stop } = start();
  statuses.toBind(DRIVER, [toBind(claim)], told(claim));
  statuses.reported(DRIVER, [entry(claim)]);
  await until("written", () => server.devices("one").length === 1);
  // The agent sees the deallocation, and not yet that the claim was allocated the same device again.
  server.entries.delete("one");
  server.allocatedAt.set("one", 2);
  server.others.set("one", [{ driver: DRIVER, pool: NODE, device: "nic-0" }]);
  statuses.toBind(DRIVER, [], told());
  await settle();
  expect(server.devices("one")).toEqual([]);
  expect(stored()).toEqual([]);
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

it("what was reported of a prepared claim is not written to a later allocation that the driver was not told of", async () => {
  const { world, records, server, start } = await setUp([]);
  using _world = world;
  const claim = world.claim("one", "nic-0");
  const devices = [{ ...binding, cdiDeviceIds: [] }];
  await records.save(DRIVER, claim, { state: "prepared", devices, cdi: "", pods: [] });
  server.allocated.set("one", [{ ...binding, driver: DRIVER }]);
  const { statuses, stop } = start();
  statuses.reported(DRIVER, [entry(claim)]);
  await until("written", () => server.devices("one").length === 1);
  // Its pod was deleted by force: the claim is allocated the same device again before the kubelet calls.
  server.entries.delete("one");
  server.allocatedAt.set("one", 2);
  statuses.toBind(DRIVER, [toBind(claim, 2)], told(claim));
  await settle();
  expect(server.devices("one")).toEqual([]);
  statuses.renewed(DRIVER, [claim.uid]);
  statuses.toBind(DRIVER, [toBind(claim, 2)], keysOf(toBind(claim, 2)));
  statuses.reported(DRIVER, [entry(claim)]);
  await until("written again", () => server.devices("one").length === 1);
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
