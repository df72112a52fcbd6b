import { expect, it } from "vitest";
import {
  countEnded,
  countText,
  type EligiblePod,
  isEligibilityNeeded,
  listPods,
  ownerText,
  type SortKey,
  sortPods,
  usedText,
  withUsage,
} from "./listed-pods.ts";

const past = (name: string, uid: string, leftAt: number | null = null) => ({
  ...{ uid, namespace: "default", name, seenAt: 1_000, leftAt },
});
const running = (name: string, uid: string, ...states: ("running" | "exited")[]) => ({
  ...{ uid, namespace: "default", name, ips: [], sandboxes: [], observedAt: 5_000 },
  containers: states.map((state, at) => ({
    ...{ id: `c${at}`, name: `c${at}`, kind: "container" as const, state, attempt: 0 },
    ...{ reason: "", message: "", image: "", imageRef: "" },
  })),
});
const namesOf = (list: ReturnType<typeof listPods>) => list.map(({ name, uid }) => `${name} ${uid}`);

it("lists pods that exist by name, then the last deleted first", () => {
  const history = [past("old", "1", 100), past("web", "2"), past("older", "3", 50), past("api", "4")];
  const list = listPods("", history, [
    running("static", "5", "running", "exited"),
    running("web", "2", "running"),
  ]);
  expect(namesOf(list)).toEqual(["api 4", "static 5", "web 2", "old 1", "older 3"]);
  expect(list.map(({ containers }) => containers)).toEqual([
    undefined,
    "1 of 2 run",
    "1 of 1 run",
    undefined,
    undefined,
  ]);
});

it("finds by a part of the name with its namespace, and by UID", () => {
  const history = [past("web", "2"), past("api", "4")];
  expect(namesOf(listPods("t/we", history, []))).toEqual(["web 2"]);
  expect(namesOf(listPods("4", history, []))).toEqual(["api 4"]);
  expect(listPods("4 ", history, [])).toEqual([]);
});

it("explains pods of the history by UID: several may have had the name", () => {
  const list = listPods(
    "",
    [past("web", "1", 100), past("web", "2", 200), past("web", "3")],
    [running("new", "4")],
  );
  expect(list.map(({ uid, isRecorded }) => `${uid} ${isRecorded}`)).toEqual([
    "4 false",
    "3 true",
    "2 true",
    "1 true",
  ]);
});

it("lists a static pod and its mirror pod once, and a pod that was created again twice", () => {
  const list = listPods(
    "",
    [past("etcd", "mirror"), past("web", "1", 100)],
    [running("etcd", "static", "running"), running("web", "2", "running")],
  );
  expect(list.map(({ uid, containers }) => `${uid}: ${containers}`)).toEqual([
    "mirror: 1 of 1 run",
    "2: 1 of 1 run",
    "1: undefined",
  ]);
});

function eligible(
  name: string,
  uid: string,
  priority: number,
  eviction: EligiblePod["eviction"],
): EligiblePod {
  const pod: EligiblePod["pod"] = {
    ...{ uid, namespace: "default", name, nodeName: "n", phase: "Running", priority, priorityClassName: "" },
    ...{ deletionTimestamp: null, startTime: 1_000, gracePeriodSeconds: 30 },
    ...{ isStatic: false, isMirror: false, softEvictNotify: false },
    qosLevel: "shared_cores",
    qosClass: "Burstable",
    owner: { kind: "ReplicaSet", name: `of-${name}`, uid: `owner-${uid}` },
  };
  return { pod, eviction };
}

it.each<[SortKey, boolean, string[]]>([
  ["name", true, ["web", "old", "api"]],
  ["priority", false, ["web", "api", "old"]],
  ["priority", true, ["api", "web", "old"]],
  ["restarts", true, ["api", "web", "old"]],
  ["eviction", true, ["web", "api", "old"]],
])("sorts by %s (descending: %s), pods without a value last", (key, isDescending, names) => {
  const restarted = running("api", "4", "running");
  restarted.containers[0]!.attempt = 3;
  const list = listPods(
    "",
    [past("old", "1", 100), past("web", "2"), past("api", "4")],
    [restarted, running("web", "2", "running")],
    [eligible("web", "2", 1, "now"), eligible("api", "4", 5, "later")].reverse(),
  );
  expect(sortPods(list, key, isDescending).map(({ name }) => name)).toEqual(names);
});

it("counts a restarted container once, though the runtime still lists its predecessor", () => {
  const pod = running("web", "2", "exited", "running");
  const [before, after] = pod.containers;
  const containers = [
    { ...before!, name: "app", attempt: 3, createdAt: 1_000 },
    { ...after!, name: "app", attempt: 4, createdAt: 2_000 },
  ];
  const [listed] = listPods("", [], [{ ...pod, containers }]);
  expect(listed).toMatchObject({ containers: "1 of 1 run", restarts: 4 });
});

it.each<[string, string, boolean]>([
  ["", "", false],
  ["name", "", false],
  ["-restarts", "", false],
  ["priority", "", true],
  ["-eviction", "", true],
  ["unheard-of", "", false],
  ["", "never", true],
])(
  "whether sorting by '%s' and the filter '%s' need the pods' eligibility: %s",
  (sort, eviction, isNeeded) => {
    expect(isEligibilityNeeded(sort, eviction)).toBe(isNeeded);
  },
);

it("counts the pods whose reason has ended, which are read again", () => {
  const pods = [{ until: 1_000 }, { until: 2_000 }, {}] as EligiblePod[];
  expect([999, 1_000, 3_000].map((now) => countEnded(pods, now))).toEqual([0, 1, 2]);
  expect(countEnded(undefined, 1_000)).toBe(0);
});

const counts: Parameters<typeof countText>[0] = { found: 2, listed: 2, hasMore: false };
it.each<[Partial<typeof counts>, string]>([
  [{}, "2 pods"],
  [{ found: 1, listed: 1 }, "1 pod"],
  [{ found: 5 }, "The first 2; write more of the name to see others."],
  [{ hasMore: true }, "The first 2; write more of the name to see others."],
  [{ found: 0, listed: 0 }, "No pod known here has such a name. Pods of other nodes are not known here."],
  [{ found: 0, listed: 0, filter: "Later" }, 'None of the pods found matches the filter "Later".'],
])("says of %o: %s", (changes, text) => {
  expect(countText({ ...counts, ...changes })).toBe(text);
});

it("has the owner of a pod in words", () => {
  expect(ownerText(eligible("web", "2", 1, "now"))).toBe("ReplicaSet of-web");
  expect(ownerText(undefined)).toBeUndefined();
});

it("has what pods use by the UID of the runtime, sorts by it, and what is unknown comes last", () => {
  const list = listPods(
    "",
    [past("etcd", "mirror"), past("web", "2"), past("new", "3")],
    [running("etcd", "static", "running"), running("web", "2", "running"), running("new", "3", "running")],
  );
  const used = withUsage(list, [
    { uid: "static", cpu: 0.5, memoryBytes: 3 },
    { uid: "2", cpuUnknown: "the first reading", memoryBytes: 2 ** 30 },
  ]);
  expect(sortPods(used, "cpu", true).map(({ name }) => name)).toEqual(["etcd", "new", "web"]);
  expect(sortPods(used, "memory", true).map(({ name }) => name)).toEqual(["web", "etcd", "new"]);
  expect(isEligibilityNeeded("-cpu", "")).toBe(false);
});

it.each([
  ["cpu", 0.25, "0.25"],
  ["cpu", 0.00004, "0"],
  ["cpu", 12.3456, "12.346"],
  ["memory", 1.25 * 2 ** 30, "1.25 GiB"],
] as const)("%s %d is %s", (what, amount, text) => {
  expect(usedText(what, amount)).toBe(text);
});
