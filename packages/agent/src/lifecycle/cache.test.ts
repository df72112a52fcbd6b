import { describe, expect, it } from "vitest";
import type { PodStatus } from "../runtime/index.ts";
import { PodStatusCache } from "./cache.ts";

const status = (uid: string, ip = ""): PodStatus => ({
  uid,
  name: uid,
  namespace: "default",
  ips: ip ? [ip] : [],
  sandboxes: [],
  containers: [],
});
const live = new AbortController().signal;

/** What a promise has come to by now. */
async function stateOf(promise: Promise<unknown>): Promise<"pending" | "resolved" | "rejected"> {
  const settled = promise.then(
    () => "resolved" as const,
    () => "rejected" as const,
  );
  return Promise.race([settled, new Promise<"pending">((resolve) => setImmediate(() => resolve("pending")))]);
}

describe("PodStatusCache", () => {
  const answers: [string, (cache: PodStatusCache) => void, boolean][] = [
    ["a newer status", (cache) => cache.set("a", status("a"), 11), true],
    ["a status of the same time", (cache) => cache.set("a", status("a"), 10), false],
    ["an older status", (cache) => cache.set("a", status("a"), 9), false],
    [
      "a newer failure",
      (cache) => cache.fail({ uid: "a", name: "pod-a", namespace: "default" }, new Error("no"), 11),
      true,
    ],
    ["a newer list in which its containers are unchanged", (cache) => cache.observe("a", 11), false],
    ["a newer reading without the pod", (cache) => cache.delete("a", 11), true],
    ["a newer global time", (cache) => cache.updateTime(11), false],
    ["the same global time", (cache) => cache.updateTime(10), false],
    ["news of another pod", (cache) => cache.set("b", status("b"), 11), false],
  ];
  it.each(answers)("a caller waiting for a reading after 10 gets %s: %#", async (_, act, resolves) => {
    const cache = new PodStatusCache();
    cache.set("a", status("a"), 5);
    const waited = cache.getNewerThan("a", 10, live);
    expect(await stateOf(waited)).toBe("pending");
    act(cache);
    expect(await stateOf(waited)).toBe(resolves ? "resolved" : "pending");
    expect(cache.waiting).toBe(resolves ? 0 : 1);
  });

  it("does not make those wait for whom it is new enough already", async () => {
    const cache = new PodStatusCache();
    cache.set("a", status("a", "10.0.0.1"), 11);
    expect((await cache.getNewerThan("a", 10, live)).status.ips).toEqual(["10.0.0.1"]);
    cache.updateTime(20);
    expect((await cache.getNewerThan("ghost", 19, live)).status).toEqual({
      ...status("ghost"),
      name: "",
      namespace: "",
    });
  });

  it("keeps the last status beside the error, until an inspection succeeds", () => {
    const cache = new PodStatusCache();
    cache.set("a", status("a", "10.0.0.1"), 1);
    cache.fail({ uid: "a", name: "pod-a", namespace: "default" }, new Error("no answer"), 2);
    expect(cache.get("a")).toMatchObject({
      error: new Error("no answer"),
      status: { ips: ["10.0.0.1"] },
      modifiedAt: 2,
    });
    cache.set("a", status("a"), 3);
    expect(cache.get("a").error).toBeUndefined();
  });

  it("lets go of 1,000 waiters, each by its own signal", async () => {
    const cache = new PodStatusCache();
    const controllers = Array.from({ length: 1_000 }, () => new AbortController());
    const waits = controllers.map(({ signal }) => cache.getNewerThan("a", 0, signal));
    controllers[7]?.abort(new Error("mine alone"));
    await expect(waits[7]).rejects.toThrow("mine alone");
    expect(cache.waiting).toBe(999);
    cache.set("a", status("a"), 1);
    expect((await Promise.allSettled(waits)).filter(({ status }) => status === "fulfilled")).toHaveLength(
      999,
    );
    const late = new AbortController();
    late.abort(new Error("too late"));
    await expect(cache.getNewerThan("b", 9, late.signal)).rejects.toThrow("too late");
    expect(cache.waiting).toBe(0);
  });

  it("returns the pods that callers wait for", () => {
    const wanted: string[] = [];
    const cache = new PodStatusCache({ wanted: (uid) => void wanted.push(uid) });
    void cache.getNewerThan("a", 0, live);
    cache.set("b", status("b"), 1);
    void cache.getNewerThan("b", 0, live);
    expect(wanted).toEqual(["a"]);
  });
});
