import { DeviceStatusNotWritten } from "@nodekeeper/api/errors";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import type { ClaimReference } from "./claim-reader.ts";
import { statusManager } from "./claim-status-api.ts";
import { DRIVER, recordedDevice } from "./testing/claim-world.ts";
import { entry, settle, setUp } from "./testing/status-world.ts";

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
