import type { KubeObject, WatchTarget } from "@nodekeeper/core/kube";
import { childScope, type ScopedSignal, silentLogger, untilAborted } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ClaimReference } from "./claim-reader.ts";
import type { ClaimRecords } from "./claim-records.ts";
import { ClaimsToBind } from "./claims-to-bind.ts";
import { ClaimWorld, DRIVER, NODE, recordedDevice } from "./testing/claim-world.ts";

const OTHER = "other.example.com";

let world: ClaimWorld;
let records: ClaimRecords;
let scope: ScopedSignal;
let running: Promise<void>;
/** Open watches, by namespace and field selector. */
const watches = new Map<string, WatchTarget>();
let toBind: ClaimsToBind;
let changes = 0;
/** Drivers that are told of their claims. */
let served: Set<string>;

beforeEach(() => {
  world = new ClaimWorld();
  records = world.records();
  served = new Set([DRIVER, OTHER]);
});
afterEach(async () => {
  scope.abort();
  await running;
  expect(watches.size).toBe(0);
  world[Symbol.dispose]();
});

function start(unprepared: readonly ClaimReference[] = []): void {
  changes = 0;
  toBind = new ClaimsToBind({
    nodeName: NODE,
    records,
    unprepared: () => unprepared,
    isServed: (driver) => served.has(driver),
    watch: (target) => ({
      lastError: undefined,
      async run(signal) {
        const key = `${target.namespace ?? ""} ${target.fieldSelector}`;
        watches.set(key, target);
        await untilAborted(signal);
        watches.delete(key);
      },
    }),
    log: silentLogger,
  });
  toBind.subscribe(() => {
    changes++;
  });
  scope = childScope();
  running = toBind.run(scope.signal);
}

const podWatch = () => watches.get(` spec.nodeName=,status.nominatedNodeName=${NODE}`)!.handler;
const claimWatch = (name: string) => watches.get(`default metadata.name=${name}`)!.handler;
/** Lets an aborted watch end. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

const pod = (uid: string, ...claims: string[]): KubeObject => ({
  metadata: { namespace: "default", name: uid, uid },
  spec: {
    serviceAccountName: "workload",
    resourceClaims: claims.map((name) => ({ resourceClaimName: name })),
  },
});

const result = (driver: string, device: string, ...bindingConditions: string[]) => ({
  request: "req",
  driver,
  pool: NODE,
  device,
  ...(bindingConditions.length > 0 && { bindingConditions }),
});

const claim = (name: string, pods: readonly string[], ...results: object[]): KubeObject => ({
  metadata: { namespace: "default", name, uid: `uid-of-${name}` },
  status: {
    ...(results.length > 0 && {
      allocation: { allocationTimestamp: "2026-03-01T12:00:00Z", devices: { results } },
    }),
    reservedFor: pods.map((uid) => ({ resource: "pods", name: uid, uid })),
  },
});

const namesOf = (driver = DRIVER) => toBind.of(driver).map(({ name }) => name);
const bound = (...names: string[]) => names.map((name) => result(DRIVER, name, "Attached"));

async function prepared(driver: string, name: string, device = "gpu-0"): Promise<void> {
  const reference = { namespace: "default", name, uid: `uid-of-${name}` };
  const devices = [recordedDevice(device)];
  await records.save(driver, reference, { state: "prepared", devices, cdi: "", pods: [] });
}

it("claims are complete once the pods and all of their claims are read", () => {
  start();
  expect(toBind.isComplete).toBe(false);
  podWatch().onReplace([pod("one", "one", "missing")], "1");
  claimWatch("one").onReplace([claim("one", ["one"], ...bound("gpu-0"))], "1");
  expect(toBind.isComplete).toBe(false);
  claimWatch("missing").onReplace([], "1");
  expect(toBind.isComplete).toBe(true);
  expect(toBind.of(DRIVER)).toMatchObject([
    {
      namespace: "default",
      name: "one",
      uid: "uid-of-one",
      pods: [{ uid: "one", serviceAccount: "workload" }],
      devices: [{ device: "gpu-0", bindingConditions: ["Attached"] }],
      allocatedAt: Date.parse("2026-03-01T12:00:00Z"),
    },
  ]);
});

it("only devices with binding conditions, of claims that are reserved for a pod that waits, count", () => {
  start();
  podWatch().onReplace([pod("one", "one", "used", "plain", "free")], "1");
  claimWatch("one").onReplace([claim("one", ["one"], ...bound("gpu-0"), result(DRIVER, "gpu-1"))], "1");
  claimWatch("used").onReplace([claim("used", ["another"], ...bound("gpu-2"))], "1");
  claimWatch("plain").onReplace([claim("plain", ["one"], result(DRIVER, "gpu-3"))], "1");
  claimWatch("free").onReplace([claim("free", [])], "1");
  expect(toBind.of(DRIVER).map(({ devices }) => devices.map(({ device }) => device))).toEqual([["gpu-0"]]);
  expect(namesOf(OTHER)).toEqual([]);
  claimWatch("used").onUpsert(claim("used", ["another", "one"], ...bound("gpu-2")));
  expect(namesOf()).toEqual(["one", "used"]);
});

it("a claim stays when its pod was bound, until each of its drivers has prepared it", async () => {
  start();
  podWatch().onReplace([pod("one", "one")], "1");
  const both = [...bound("gpu-0"), result(OTHER, "nic-0", "Linked")];
  claimWatch("one").onReplace([claim("one", ["one"], ...both)], "1");
  podWatch().onDelete(pod("one", "one"));
  await settle();
  expect([namesOf(), namesOf(OTHER)]).toEqual([["one"], ["one"]]);
  const before = changes;
  await prepared(DRIVER, "one");
  expect([namesOf(), namesOf(OTHER)]).toEqual([[], ["one"]]);
  expect(changes).toBeGreaterThan(before);
  await records.remove(DRIVER, "uid-of-one");
  expect(namesOf()).toEqual([]);
  podWatch().onUpsert(pod("two", "one"));
  claimWatch("one").onUpsert(claim("one", ["one", "two"], ...both));
  expect(namesOf()).toEqual(["one"]);
  podWatch().onDelete(pod("two", "one"));
  await prepared(DRIVER, "one");
  await prepared(OTHER, "one", "nic-0");
  await settle();
  expect(namesOf(OTHER)).toEqual([]);
  expect([...watches.keys()]).toEqual([` spec.nodeName=,status.nominatedNodeName=${NODE}`]);
});

it("a claim is not kept for a driver that is not told of it, and followed again for one that is from now on", async () => {
  served.delete(OTHER);
  start([{ namespace: "default", name: "one", uid: "uid-of-one" }]);
  podWatch().onReplace([pod("one", "one")], "1");
  const both = claim("one", ["one"], ...bound("gpu-0"), result(OTHER, "nic-0", "Linked"));
  claimWatch("one").onReplace([both], "1");
  podWatch().onDelete(pod("one", "one"));
  await prepared(DRIVER, "one");
  await settle();
  expect(watches.size).toBe(1);
  served.add(OTHER);
  toBind.servedChanged();
  expect(toBind.isComplete).toBe(false);
  claimWatch("one").onReplace([both], "1");
  expect([namesOf(), namesOf(OTHER)]).toEqual([[], ["one"]]);
});

it("a record of other devices, which is left of an earlier allocation, does not prepare a claim", async () => {
  start();
  podWatch().onReplace([pod("one", "one")], "1");
  claimWatch("one").onReplace([claim("one", ["one"], ...bound("gpu-1"))], "1");
  await prepared(DRIVER, "one");
  podWatch().onDelete(pod("one", "one"));
  expect(namesOf()).toEqual(["one"]);
});

it("a claim that is prepared for one pod is one as long as another waits", async () => {
  start();
  podWatch().onReplace([pod("two", "one")], "1");
  await prepared(DRIVER, "one");
  claimWatch("one").onReplace([claim("one", ["one", "two"], ...bound("gpu-0"))], "1");
  expect(namesOf()).toEqual(["one"]);
  // The first pod ends before the second is bound: the driver must prepare it again.
  await records.remove(DRIVER, "uid-of-one");
  podWatch().onDelete(pod("two", "one"));
  expect(namesOf()).toEqual(["one"]);
});

it.each<[string, () => void]>([
  ["deallocated", () => claimWatch("one").onUpsert(claim("one", ["one"]))],
  ["deleted", () => claimWatch("one").onDelete(claim("one", []))],
  [
    "replaced",
    () => {
      const other = claim("one", ["one"], ...bound("gpu-0"));
      claimWatch("one").onReplace([{ ...other, metadata: { ...other.metadata, uid: "another" } }], "1");
    },
  ],
])("a claim that was %s is none, and not read any more without a pod", async (_, end) => {
  start();
  podWatch().onReplace([pod("one", "one")], "1");
  claimWatch("one").onReplace([claim("one", ["one"], ...bound("gpu-0"))], "1");
  podWatch().onDelete(pod("one", "one"));
  expect(namesOf()).toEqual(["one"]);
  end();
  await settle();
  expect(namesOf()).toEqual([]);
  expect(watches.size).toBe(1);
});

it("a claim of an earlier agent stays without a pod if it is allocated, and is dropped otherwise", async () => {
  start(["bound", "plain", "gone"].map((name) => ({ namespace: "default", name, uid: `uid-of-${name}` })));
  podWatch().onReplace([], "1");
  expect(toBind.isComplete).toBe(false);
  claimWatch("bound").onReplace([claim("bound", ["one"], ...bound("gpu-0"))], "1");
  claimWatch("plain").onReplace([claim("plain", ["one"], result(DRIVER, "gpu-1"))], "1");
  claimWatch("gone").onReplace([], "1");
  await settle();
  expect(toBind.isComplete).toBe(true);
  expect(namesOf()).toEqual(["bound"]);
  expect(watches.size).toBe(2);
});

it("an allocation of another node is none of this one's, though its pod was nominated here before", () => {
  start();
  podWatch().onReplace([pod("pod-1", "one")], "1");
  const allocated = claim("one", ["pod-1"], result(DRIVER, "gpu-0", "example.com/Attached"));
  const of = (...values: string[]) => {
    const matchFields = [{ key: "metadata.name", operator: "In", values }];
    const { allocation } = allocated.status as { allocation: object };
    const status = {
      ...(allocated.status as object),
      allocation: { ...allocation, nodeSelector: { nodeSelectorTerms: [{ matchFields }] } },
    };
    return { ...allocated, status };
  };
  claimWatch("one").onReplace([of("another-node")], "2");
  expect(toBind.of(DRIVER)).toEqual([]);
  claimWatch("one").onUpsert(of("another-node", NODE));
  expect(toBind.of(DRIVER)).toHaveLength(1);
});

it("more claims than can be watched wait for those before them, so that other watches have room", async () => {
  start();
  const names = Array.from({ length: 14 }, (_, at) => `claim-${at}`);
  podWatch().onReplace(
    names.map((name) => pod(`pod-of-${name}`, name)),
    "1",
  );
  expect(watches.size).toBe(1 + 12);
  for (const name of names.slice(0, 12)) claimWatch(name).onReplace([], "2");
  podWatch().onReplace([pod("pod-of-claim-12", "claim-12"), pod("pod-of-claim-13", "claim-13")], "3");
  await settle();
  expect([...watches.keys()].filter((key) => key.startsWith("default ")).sort()).toEqual([
    "default metadata.name=claim-12",
    "default metadata.name=claim-13",
  ]);
});
