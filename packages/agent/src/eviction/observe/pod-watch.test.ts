import { createKubeClient, createKubeMetrics, type KubeApiClient } from "@nodekeeper/core/kube";
import { type Clock, type Logger, Registry, retryPolicies, silentLogger } from "@nodekeeper/core/lib";
import { createDevApiServer, type DevApiServer, SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createEvictionMetrics } from "../metrics.ts";
import { jsonPod } from "../testing/round-parts.ts";
import { testNode } from "../testing/rounds.ts";
import { PodWatch, type PodWatchOptions } from "./pod-watch.ts";

let server: DevApiServer;
let client: KubeApiClient;
let watch: PodWatch;
let newWatch: (options?: Partial<Pick<PodWatchOptions, "observer" | "clock">>) => PodWatch;
let stop: AbortController;
let running: Promise<void>;
const errors: unknown[] = [];
const warnings: unknown[] = [];
const log = {
  ...silentLogger,
  error: (fields: unknown) => void errors.push(fields),
  warn: (_fields: unknown, text: unknown) => void warnings.push(text),
} as Logger;
let clock: SteppedClock;

beforeEach(async () => {
  errors.length = 0;
  warnings.length = 0;
  clock = new SteppedClock();
  server = createDevApiServer({ clock, log: silentLogger });
  const { url } = await server.start();
  const registry = new Registry();
  const kubeMetrics = createKubeMetrics(registry);
  const common = { clock, log };
  client = createKubeClient({
    access: { source: "test", server: new URL(url) },
    version: "1.2.3",
    metrics: kubeMetrics,
    ...common,
  });
  const metrics = createEvictionMetrics(registry);
  newWatch = (options = {}) =>
    new PodWatch({ client, nodeName: testNode, kubeMetrics, metrics, ...common, ...options });
  watch = newWatch();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await running;
  client.close();
  await server.stop();
});

const start = async () => {
  running = watch.run(stop.signal);
  await until("the pods are listed", () => watch.isSynced);
};
const steppedBy = (stepped: Clock) => ({
  now: () => stepped.now(),
  after: (ms: number, callback: () => void) => stepped.after(ms, callback),
  sleep: (ms: number, signal?: AbortSignal) => stepped.sleep(ms, signal),
});
const names = () =>
  watch
    .list()
    .map(({ pod }) => pod.name)
    .sort();

describe("the pods of a node", () => {
  it("are those of this node alone, and follow the API server", async () => {
    server.store.put(jsonPod("a"));
    server.store.put(jsonPod("foreign", { spec: { nodeName: "other" } }));
    expect(watch.isSynced).toBe(false);
    running = Promise.resolve();
    expect(watch.healthCheck().check().ok).toBe(false);
    await start();
    expect(names()).toEqual(["a"]);
    await until("the watch is healthy", () => watch.healthCheck().check().ok);
    server.store.put(
      jsonPod("b", { status: { phase: "Succeeded" }, spec: { serviceAccountName: "trainer" } }),
    );
    await until("two pods are seen", () => watch.list().length === 2);
    const b = watch.list().find(({ pod }) => pod.name === "b");
    expect(b?.pod.phase).toBe("Succeeded");
    expect(b?.encoded().length).toBeGreaterThan(10);
    expect(Object.keys(b ?? {}).sort()).toEqual([
      ...["details", "encoded", "pod", "resourceVersion", "serviceAccount"],
    ]);
    expect([watch.serviceAccountOf("b"), watch.serviceAccountOf("foreign")]).toEqual(["trainer", undefined]);
    server.store.delete("pods", "a", "default");
    await until("one pod is left", () => watch.list().length === 1);
    expect(names()).toEqual(["b"]);
  });

  it("are without one that was found to be gone, also if the watch reports late what came before", async () => {
    server.store.put(jsonPod("a"));
    server.store.put(jsonPod("b"));
    await start();
    const deleted: string[] = [];
    watch.onDeleted((uid) => void deleted.push(uid));
    watch.forget("a");
    expect([names(), deleted]).toEqual([["b"], ["a"]]);
    server.store.put(jsonPod("a", { metadata: { labels: { changed: "late" } } }));
    server.store.put(jsonPod("c"));
    await until("the change after it is seen", () => names().includes("c"));
    expect(names()).toEqual(["b", "c"]);
    server.store.delete("pods", "a", "default");
    server.store.delete("pods", "b", "default");
    await until("the deletion after it is seen", () => !names().includes("b"));
    expect([names(), deleted]).toEqual([["c"], ["a", "b"]]);
  });

  it("report deletions: deleted, replaced by another of the name, or missing after the watch broke", async () => {
    for (const name of ["a", "b", "c"]) server.store.put(jsonPod(name));
    await start();
    const uidOf = (name: string) => watch.list().find(({ pod }) => pod.name === name)?.pod.uid;
    const expected = ["a", "b", "c"].map(uidOf);
    const deleted: string[] = [];
    const stopListening = watch.onDeleted((uid) => deleted.push(uid));
    server.store.delete("pods", "a", "default");
    await until("the first deletion is seen", () => deleted.length === 1);
    server.store.delete("pods", "b", "default");
    server.store.put(jsonPod("b", { metadata: { uid: undefined, resourceVersion: undefined } }));
    await until("the second deletion is seen", () => deleted.length === 2);
    server.cutWatches();
    server.store.delete("pods", "c", "default");
    server.store.compact();
    let failures = 0;
    await until("the third deletion is seen", () => {
      // A watch that has failed is tried again at once.
      if (warnings.length > failures) clock.advance(retryPolicies.apiWatch.baseMs);
      failures = warnings.length;
      return deleted.length === 3;
    });
    expect(deleted).toEqual(expected);
    stopListening();
    server.store.delete("pods", "b", "default");
    await until("no pod is left", () => watch.list().length === 0);
    expect(deleted).toHaveLength(3);
  });

  it("leave out what is no pod, name it once, and keep what was known of it", async () => {
    server.store.put(jsonPod("a"));
    await start();
    await until("the watch is healthy", () => watch.healthCheck().check().ok);
    const bad = jsonPod("a", { spec: { containers: "many" } });
    server.store.put(bad as never);
    server.store.put({ ...bad, extra: 1 } as never);
    server.store.put(jsonPod("b"));
    await until("the new pod is seen", () => names().includes("b"));
    expect(names()).toEqual(["a", "b"]);
    expect(errors).toMatchObject([{ pod: { namespace: "default", name: "a" } }]);
  });
});

it("tells its observer which deletions may have been missed: those that a reopened watch delivers first", async () => {
  const left: boolean[] = [];
  let monotonic = 0;
  const observer = {
    seen: () => {},
    left: (_uid: string, _last: unknown, isMissed: boolean) => void left.push(isMissed),
    listed: () => {},
    heard: () => {},
  };
  watch = newWatch({ observer, clock: { ...steppedBy(clock), monotonic: () => monotonic } });
  for (const name of ["a", "b", "c"]) server.store.put(jsonPod(name));
  await start();
  const isOpen = () => watch.healthCheck().check().message === "watching";
  await until("the watch is open", isOpen);
  // It began with a list, so it has missed nothing.
  server.store.delete("pods", "a", "default");
  await until("the first deletion", () => left.length === 1);
  server.cutWatches();
  await until("the watch is lost", () => !isOpen());
  server.store.delete("pods", "b", "default");
  monotonic = 1_000;
  await until("the second deletion", () => {
    clock.advance(1_000);
    return left.length === 2;
  });
  monotonic = 10_000;
  server.store.delete("pods", "c", "default");
  await until("the third deletion", () => left.length === 3);
  expect(left).toEqual([false, true, false]);
});

it("tells its observer that a deletion after a bookmark was not missed", async () => {
  const left: boolean[] = [];
  let heard = 0;
  let monotonic = 0;
  const observer = {
    seen: () => {},
    left: (_uid: string, _last: unknown, isMissed: boolean) => void left.push(isMissed),
    listed: () => {},
    heard: () => void heard++,
  };
  watch = newWatch({ observer, clock: { ...steppedBy(clock), monotonic: () => monotonic } });
  for (const name of ["a", "b"]) server.store.put(jsonPod(name));
  await start();
  const isOpen = () => watch.healthCheck().check().message === "watching";
  await until("the watch is open", isOpen);
  server.cutWatches();
  await until("the watch is lost", () => !isOpen());
  monotonic = 1_000;
  await until("the watch is open again", () => {
    clock.advance(1_000);
    return isOpen();
  });
  server.store.delete("pods", "a", "default");
  await until("the first deletion", () => left.length === 1);
  clock.advance(60_000);
  await until("a bookmark", () => heard === 1);
  server.store.delete("pods", "b", "default");
  await until("the second deletion", () => left.length === 2);
  expect(left).toEqual([true, false]);
});

it("tells its observer until when all changes are known: at a bookmark, and at events of a watch that has been open for long", async () => {
  let heard = 0;
  let monotonic = 0;
  const observer = { seen: () => {}, left: () => {}, listed: () => {}, heard: () => void heard++ };
  // A busy machine does not count as time for which the watch has been open.
  watch = newWatch({ observer, clock: { ...steppedBy(clock), monotonic: () => monotonic } });
  await start();
  await until("the watch is open", () => watch.healthCheck().check().message === "watching");
  server.store.put(jsonPod("a"));
  await until("a pod is seen", () => watch.list().length === 1);
  // The first events may be those that were missed.
  expect(heard).toBe(0);
  monotonic = 10_000;
  server.store.put(jsonPod("b"));
  await until("an event counts", () => heard === 1);
  server.store.delete("pods", "b", "default");
  await until("a deletion counts", () => heard === 2);
  clock.advance(60_000);
  await until("a bookmark counts", () => heard === 3);
});
