import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DeviceBindingDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { KubeObject, WatchTarget } from "@nodekeeper/core/kube";
import { childScope, FakeClock, type ScopedSignal, silentLogger, untilAborted } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { createServer, ServerError, Status } from "nice-grpc";
import { afterEach, beforeEach, expect, it } from "vitest";
import { AllocationReports } from "./allocation-reports.ts";
import { allocationKey, type ClaimToBind } from "./claim-to-bind.ts";
import { DRIVER, NODE } from "./testing/claim-world.ts";

let directory: string;
let server: ReturnType<typeof createServer>;
let scope: ScopedSignal;
let connection: ScopedSignal;
let running: Promise<unknown>;
let isFailing: boolean;
let lastError: Error | undefined;
const clock = new FakeClock();
/** UIDs of the claims in each call. */
const told: string[][] = [];
/** The same, of whose devices the status is accepted. */
let accepted: string[] = [];
/** UIDs of claims whose status the driver must report again. */
const renewed: string[] = [];
/** Whether each call told of something new. */
const news: boolean[] = [];
const watches = new Set<WatchTarget>();
let reports: AllocationReports;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nkar-"));
  told.length = 0;
  accepted = [];
  renewed.length = 0;
  news.length = 0;
  isFailing = false;
  lastError = undefined;
  server = createServer();
  server.add(DeviceBindingDefinition, {
    reportAllocations: async ({ claims }) => {
      told.push(claims.map(({ claim, allocatedAt }) => `${claim?.uid} ${allocatedAt}`));
      if (isFailing) throw new ServerError(Status.INTERNAL, "the switch is down");
      return {};
    },
  });
  await server.listen(`unix:${join(directory, "driver.sock")}`);
  reports = new AllocationReports({
    nodeName: NODE,
    records: { get: () => undefined, subscribe: () => {} },
    statuses: {
      unprepared: () => [],
      toBind: (_, claims, keys) => {
        const isTold = (claim: ClaimToBind) => keys.get(claim.uid) === allocationKey(claim);
        accepted = claims.filter(isTold).map(({ uid, allocatedAt }) => `${uid} ${allocatedAt}`);
      },
      untold: () => renewed.push("untold"),
      renewed: (_, uids) => renewed.push(...uids),
    },
    watch: (target) => ({
      get lastError() {
        return lastError;
      },
      async run(signal) {
        watches.add(target);
        await untilAborted(signal);
        watches.delete(target);
      },
    }),
    clock,
    log: silentLogger,
  });
  scope = childScope();
  running = reports.run(scope.signal);
});
afterEach(async () => {
  scope.abort();
  await running;
  server.forceShutdown();
  rmSync(directory, { recursive: true });
});

function connect(): void {
  connection = childScope(scope.signal);
  const target = { driver: DRIVER, endpoint: join(directory, "driver.sock") };
  const onTold = (isNew: boolean) => news.push(isNew);
  void reports.tell({ ...target, service: DeviceBindingDefinition.fullName }, onTold, connection.signal);
}

const watchOf = (plural: string) =>
  until(plural, () => [...watches].find(({ resource }) => resource.plural === plural)?.handler);

const pod: KubeObject = {
  metadata: { namespace: "default", name: "pod", uid: "pod" },
  spec: { resourceClaims: [{ resourceClaimName: "claim" }] },
};

function allocated(allocatedAt: number): KubeObject {
  const results = [
    { request: "r", driver: DRIVER, pool: NODE, device: "gpu-0", bindingConditions: ["Attached"] },
  ];
  const allocationTimestamp = new Date(allocatedAt).toISOString();
  return {
    metadata: { namespace: "default", name: "claim", uid: "uid" },
    status: { allocation: { allocationTimestamp, devices: { results } }, reservedFor: [{ uid: "pod" }] },
  };
}

/** Connects the driver, whose first list has the claim. */
async function waiting() {
  connect();
  (await watchOf("pods")).onReplace([pod], "1");
  const claim = await watchOf("resourceclaims");
  claim.onReplace([allocated(1_000)], "1");
  await until("told", () => told.length === 1);
  return claim;
}

it("nothing is watched without a driver, and nothing any more when the last is forgotten", async () => {
  await clock.step(10_000);
  expect(watches.size).toBe(0);
  const claim = await waiting();
  expect(told).toEqual([["uid 1000"]]);
  await until("accepted", () => accepted.length === 1);
  connection.abort();
  reports.forgotten(DRIVER);
  await until("no watches", () => watches.size === 0);
  expect(accepted).toEqual([]);
  // Of a watch that has ended.
  claim.onUpsert(allocated(2_000));
  connect();
  (await watchOf("pods")).onReplace([], "1");
  await until("told again", () => told.length === 2);
  expect(told[1]).toEqual([]);
});

it("the status of an allocation is accepted from when the driver was told of it", async () => {
  isFailing = true;
  const claim = await waiting();
  expect(accepted).toEqual([]);
  await until("its failure is known", () => reports.problemOf(DRIVER)?.includes("the switch is down"));
  isFailing = false;
  await clock.step(2_000);
  await until("accepted", () => accepted.length === 1);
  expect(reports.problemOf(DRIVER)).toBeUndefined();
  claim.onUpsert(allocated(5_000));
  expect(accepted).toEqual([]);
  await clock.step(1_000);
  await until("told that it ended", () => news.length === 2);
  await clock.step(1_000);
  await until("accepted again", () => accepted[0] === "uid 5000");
  expect(told.slice(1)).toEqual([["uid 1000"], [], ["uid 5000"]]);
  expect(renewed).toEqual(["untold", "uid", "uid"]);
  expect(news).toEqual([true, false, true]);
});

it("a claim that can't be read delays the first list, and not those after it", async () => {
  connect();
  const pods = await watchOf("pods");
  const { metadata } = pod;
  const second = {
    metadata: { ...metadata, uid: "2" },
    spec: { resourceClaims: [{ resourceClaimName: "2" }] },
  };
  pods.onReplace([pod, second], "1");
  const [first, other] = await until("both", () => {
    const claims = [...watches].filter(({ resource }) => resource.plural === "resourceclaims");
    return claims.length === 2 && claims;
  });
  first!.handler.onReplace([allocated(1_000)], "1");
  await clock.step(10_000);
  expect(told).toEqual([]);
  other!.handler.onReplace([], "1");
  await until("told", () => told.length === 1);
  const third = {
    metadata: { ...metadata, uid: "3" },
    spec: { resourceClaims: [{ resourceClaimName: "3" }] },
  };
  pods.onUpsert(third);
  first!.handler.onUpsert({ metadata: allocated(1).metadata });
  await clock.step(1_000);
  await until("told again", () => told.length === 2);
  expect(told).toEqual([["uid 1000"], []]);
});

it("a driver that connects again is told again, and all is new to it", async () => {
  const claim = await waiting();
  claim.onUpsert(allocated(1_000));
  await clock.step(10_000);
  expect(told).toHaveLength(1);
  connection.abort();
  connect();
  await until("told again", () => told.length === 2);
  expect(told[1]).toEqual(["uid 1000"]);
  await until("its answer", () => news.length === 2);
  expect(renewed).toEqual(["untold", "uid", "untold", "uid"]);
  expect(news).toEqual([true, true]);
});

it("a watch that fails is a problem of the drivers that need it", async () => {
  await waiting();
  lastError = new Error("pods is forbidden");
  expect(reports.problemOf(DRIVER)).toContain("allocations can't be reported to it: pods is forbidden");
  expect(reports.problemOf("other.example.com")).toBeUndefined();
});
