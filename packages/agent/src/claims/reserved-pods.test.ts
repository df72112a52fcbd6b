import { silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import type { LogItem } from "../lifecycle/index.ts";
import type { ClaimPod } from "./allocation.ts";
import { ReservedPods } from "./reserved-pods.ts";
import { ClaimWorld, DRIVER } from "./testing/claim-world.ts";

it("claims that may be reserved for a pod of the node are read, those being unprepared are reconciled, and no others", async () => {
  using world = new ClaimWorld();
  const records = world.records();
  const record = (name: string, namespace: string, pods: ClaimPod[]) =>
    records.save(DRIVER, { namespace, name, uid: name }, { state: "prepared", devices: [], pods, cdi: "" });
  await record("shared", "default", [{ name: "first", uid: "first" }]);
  await record("of-unknown-pods", "default", []);
  await record("generated", "default", [{ name: "other", uid: "other", isOwner: true }]);
  await record("known", "default", [{ name: "late", uid: "late" }]);
  const ending = {
    state: "unpreparing" as const,
    devices: [],
    pods: [{ name: "late", uid: "late" }],
    cdi: "",
  };
  await records.save("ending.example.com", { namespace: "default", name: "a", uid: "a" }, ending);
  await record("elsewhere", "other", [{ name: "first", uid: "first" }]);
  const position = { log: "a", sequence: 0 };
  const late = { uid: "late", namespace: "default", name: "late", sandboxes: [], containers: [] };
  const snapshot: LogItem = { kind: "snapshot", position, why: "begin", missed: undefined, pods: [late] };
  const read: string[] = [];
  const stopping = new AbortController();
  const allocations = {
    read: async (_driver: string, { name }: { name: string }) => {
      read.push(name);
      return { pods: [], devices: [] };
    },
  };
  const events = {
    async *read() {
      yield snapshot;
    },
  } as never;
  const reconciled: string[] = [];
  const queue = { add: (driver: string) => void reconciled.push(driver), addAfter: () => {} };
  const reserved = new ReservedPods({
    records,
    allocations,
    events,
    queue,
    clock: systemClock,
    log: silentLogger,
  });
  const running = reserved.run(stopping.signal);
  await until("both are read", () => read.length === 2);
  stopping.abort(stopped("test is over"));
  await running;
  expect(read.sort()).toEqual(["of-unknown-pods", "shared"]);
  expect(reconciled).toEqual(["ending.example.com"]);
});
