import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { ServerError, Status } from "nice-grpc";
import { afterEach, describe, expect, it, vi } from "vitest";
import { machineTree, twoSockets, writeMachine } from "../../../../../test/fixtures/machines.ts";
import { defaultConfiguration } from "../../config/index.ts";
import { Host } from "../../host/index.ts";
import type { DeviceAttributes, DeviceAttributesLookup, ReportedDevices } from "./claimed-zones.ts";
import { KubeletReporter } from "./kubelet-reporter.ts";
import { createKubeletReporterMetrics } from "./metrics.ts";
import type { PodUidLookup, RunningPods } from "./pod-uids.ts";
import { type KubeletReporterSettings, kubeletReporterSettingsOf } from "./settings.ts";
import { FakeKubelet } from "./testing/fake-kubelet.ts";
import type { TopologyZone } from "./zones.ts";

const defaults = kubeletReporterSettingsOf(defaultConfiguration());
const { resyncIntervalMs, retryIntervalMs, debounceMs, timeoutMs } = defaults;
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Pods of a runtime that a test sets. */
class Pods implements RunningPods {
  readonly byName = new Map([["web", "u-web"]]);
  readers = 0;
  isListed = Promise.resolve();
  #wake: (() => void)[] = [];

  happen(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  listed(): Promise<void> {
    return this.isListed;
  }

  uids(): PodUidLookup {
    return (_, name) => this.byName.get(name);
  }

  async *changes(signal: AbortSignal): AsyncIterable<undefined> {
    this.readers++;
    try {
      for (;;) {
        await new Promise<void>((resolve, reject) => {
          this.#wake.push(resolve);
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
        yield undefined;
      }
    } finally {
      this.readers--;
    }
  }
}

/** A driver whose devices a test sets. */
class Devices implements ReportedDevices {
  readonly callbacks = new Set<() => void>();
  attributesOf: DeviceAttributesLookup = () => undefined;

  onKnown(callback: () => void): () => void {
    this.callbacks.add(callback);
    return () => void this.callbacks.delete(callback);
  }

  becomeKnown(attributes: DeviceAttributes): void {
    this.attributesOf = () => attributes;
    for (const callback of this.callbacks) callback();
  }
}

async function setUp(changed: Partial<KubeletReporterSettings> = {}) {
  const machine = await writeMachine(machineTree(twoSockets));
  cleanups.push(machine.remove);
  const kubelet = await FakeKubelet.make();
  cleanups.push(() => kubelet[Symbol.asyncDispose]());
  kubelet.pods = [holding("web", 1n)];
  const clock = new FakeClock();
  const log = { ...silentLogger, warn: vi.fn(), info: vi.fn() };
  const pods = new Pods();
  const devices = new Devices();
  const registry = new Registry();
  const metrics = createKubeletReporterMetrics(registry);
  const reporter = new KubeletReporter({
    settings: {
      ...defaults,
      podResourcesSocket: kubelet.socket,
      configFile: "",
      ...changed,
    },
    // The host keeps the real clock: its deadline bounds real reads.
    host: new Host({ root: machine.root }),
    clock,
    log,
    metrics,
    pods,
    devices,
  });
  const metric = async (name: string) => (await registry.getSingleMetricAsString(name)).split("\n").slice(2);
  /** Waits until so many readings have ended, well or not, and until the watch waits for its time. */
  const ended = async (readings: number) => {
    await until(`reading ${readings} has ended`, async () => {
      const { values } = await metrics.readings.get();
      return values.reduce((sum, { value }) => sum + value, 0) === readings;
    });
    await clock.step(0);
    expect(clock.timers).toBe(1);
  };
  return { kubelet, clock, log, pods, devices, reporter, metric, ended };
}

const holding = (name: string, cpu: bigint) => ({
  namespace: "default",
  name,
  containers: [{ name: "main", cpuIds: [cpu] }],
});

const noAbort = new AbortController().signal;

function fields({ content }: GetReportContentResponse): Record<string, unknown> {
  expect(content).toHaveLength(1);
  expect(content[0]?.groupVersionKind?.kind).toBe("CustomNodeResource");
  return Object.fromEntries(
    content[0]!.field.map(({ fieldType, fieldName, value }) => {
      expect(fieldType).toBe(1);
      return [fieldName, JSON.parse(new TextDecoder().decode(value))];
    }),
  );
}

/** "consumer: CPUs" of each NUMA node. */
function holdings(response: GetReportContentResponse): string[][] {
  const zones = fields(response).TopologyZone as TopologyZone[];
  return zones
    .flatMap(({ children }) => children ?? [])
    .map(({ allocations = [] }) =>
      allocations.map(({ consumer, requests }) => `${consumer}: ${requests.cpu}`),
    );
}

/** Watches in the background; `seen` are the contents so far. */
function watch(reporter: KubeletReporter) {
  const controller = new AbortController();
  const seen: string[][][] = [];
  const ended = (async () => {
    for await (const response of reporter.listAndWatch(controller.signal)) seen.push(holdings(response));
  })().catch((error: unknown) => error);
  const stop = async () => {
    controller.abort(new Error("test ends"));
    return await ended;
  };
  cleanups.push(async () => void (await stop()));
  return { seen, stop };
}

const web = [["default/web/u-web: 1"], []];

describe("getReportContent", () => {
  it("is the zones, and the policy where it is known", async () => {
    const { kubelet, reporter } = await setUp({ topologyManager: { policy: "restricted", scope: "pod" } });
    await kubelet.start();
    const response = await reporter.getReportContent(noAbort);
    expect(holdings(response)).toEqual(web);
    expect(fields(response).TopologyPolicy).toBe("RestrictedPodLevel");
  });

  it("follows the kubelet's configuration file, and keeps the policy when it can't be read", async () => {
    const { kubelet, reporter, log } = await setUp();
    const configFile = join(kubelet.folder, "config.yaml");
    const other = await setUp({ podResourcesSocket: kubelet.socket, configFile });
    await kubelet.start();
    const policy = async () => fields(await other.reporter.getReportContent(noAbort)).TopologyPolicy;
    expect(await policy()).toBeUndefined();
    expect(other.log.warn).toHaveBeenCalledTimes(1);
    await writeFile(configFile, "kind: KubeletConfiguration\ntopologyManagerPolicy: single-numa-node\n");
    expect(await policy()).toBe("SingleNUMANodeContainerLevel");
    await writeFile(configFile, "kind: KubeletConf");
    expect(await policy()).toBe("SingleNUMANodeContainerLevel");
    expect(other.log.warn).toHaveBeenCalledTimes(2);

    expect(fields(await reporter.getReportContent(noAbort)).TopologyPolicy).toBeUndefined();
    expect(log.warn).not.toHaveBeenCalled();
  });

  it("fails while the kubelet is unavailable, and logs that and its return once", async () => {
    const { kubelet, reporter, log, metric } = await setUp();
    for (const _ of [1, 2]) {
      await expect(reporter.getReportContent(noAbort)).rejects.toMatchObject({ code: "unavailable" });
    }
    expect(log.warn).toHaveBeenCalledTimes(1);
    await kubelet.start();
    await reporter.getReportContent(noAbort);
    expect(log.info.mock.calls.map(([, message]) => message)).toEqual([
      "kubelet's PodResources can be read again",
    ]);
    expect(await metric("nodekeeper_intree_kubelet_readings_total")).toEqual([
      'nodekeeper_intree_kubelet_readings_total{result="unavailable"} 2',
      'nodekeeper_intree_kubelet_readings_total{result="ok"} 1',
    ]);
  });

  it("fails at its own deadline when the kubelet hangs, whatever the caller's", async () => {
    const { kubelet, reporter, clock } = await setUp();
    kubelet.answerList = () => new Promise(() => {});
    await kubelet.start();
    const asked = expect(reporter.getReportContent(noAbort)).rejects.toMatchObject({
      code: "deadline",
      message: expect.stringContaining(kubelet.socket),
    });
    await until("the kubelet is asked", () => kubelet.lists === 1);
    await clock.step(timeoutMs);
    await asked;
    expect(clock.timers).toBe(0);
  });

  it("counts a caller that leaves as no failure of the kubelet", async () => {
    const { kubelet, reporter, clock, log } = await setUp();
    kubelet.answerList = () => new Promise(() => {});
    await kubelet.start();
    const controller = new AbortController();
    const asked = reporter.getReportContent(controller.signal);
    await until("the kubelet is asked", () => kubelet.lists === 1);
    controller.abort(new Error("enough"));
    await expect(asked).rejects.toThrow("enough");
    await until("the reading has ended", () => clock.timers === 0);
    expect(log.warn).not.toHaveBeenCalled();
  });

  it("waits for the runtime's pods: without them there would be no allocations", async () => {
    const { kubelet, reporter, clock, pods } = await setUp();
    await kubelet.start();
    const { promise, resolve } = Promise.withResolvers<void>();
    pods.isListed = promise;
    const asked = reporter.getReportContent(noAbort);
    const failed = expect(asked).rejects.toMatchObject({
      code: "deadline",
      message: expect.stringContaining("first list of pods"),
    });
    await clock.step(timeoutMs);
    await failed;
    expect(kubelet.lists).toBe(0);
    const again = reporter.getReportContent(noAbort);
    resolve();
    expect(holdings(await again)).toEqual(web);
  });

  it("leaves out a pod that does not run, and counts it", async () => {
    const { kubelet, reporter, metric } = await setUp();
    kubelet.pods = [holding("web", 1n), holding("deleted", 2n)];
    await kubelet.start();
    expect(holdings(await reporter.getReportContent(noAbort))).toEqual(web);
    expect(await metric("nodekeeper_intree_kubelet_unknown_pods")).toEqual([
      "nodekeeper_intree_kubelet_unknown_pods 1",
    ]);
  });

  it("logs once what cannot be reported, and once that it can again", async () => {
    const { kubelet, reporter, log } = await setUp();
    kubelet.allocatable = { cpuIds: [1n, 77n] };
    await kubelet.start();
    await reporter.getReportContent(noAbort);
    await reporter.getReportContent(noAbort);
    expect(log.warn.mock.calls).toEqual([
      [expect.objectContaining({ problems: ["CPU 77 is not online"] }), expect.any(String)],
    ]);
    kubelet.allocatable = { cpuIds: [1n] };
    await reporter.getReportContent(noAbort);
    expect(log.info).toHaveBeenCalledTimes(1);
  });
});

describe("listAndWatch", () => {
  it("keeps what pods hold while a kubelet that has just started does not list them yet", async () => {
    const { kubelet, reporter, pods, clock, ended, metric } = await setUp();
    await kubelet.start();
    const { seen } = watch(reporter);
    await ended(1);
    // As after its restart: nothing of the pod has changed in the runtime.
    kubelet.pods = [];
    await clock.step(resyncIntervalMs);
    await ended(2);
    expect(holdings(await reporter.getReportContent(noAbort))).toEqual(web);
    kubelet.pods = [holding("web", 1n), holding("api", 2n)];
    pods.byName.set("api", "u-api");
    await clock.step(retryIntervalMs);
    await ended(3);
    expect(seen).toEqual([web, [["default/api/u-api: 1", "default/web/u-web: 1"], []]]);
    expect(await metric("nodekeeper_intree_kubelet_readings_total")).toEqual([
      'nodekeeper_intree_kubelet_readings_total{result="ok"} 2',
      'nodekeeper_intree_kubelet_readings_total{result="incomplete"} 1',
    ]);
  });

  it("follows the kubelet after a minute of which a pod runs on that it does not list", async () => {
    const { kubelet, reporter, clock, ended } = await setUp();
    await kubelet.start();
    const { seen } = watch(reporter);
    await ended(1);
    kubelet.pods = [];
    await clock.step(resyncIntervalMs);
    for (let reading = 2; reading < 2 + 60_000 / retryIntervalMs; reading++) {
      await ended(reading);
      expect(seen).toEqual([web]);
      await clock.step(retryIntervalMs);
    }
    await until("the pod is no longer shown", () => seen.length === 2);
    expect(seen[1]).toEqual([[], []]);
  });

  it("gives the content at once, and the next a little after something happened", async () => {
    const { kubelet, reporter, clock, pods, ended } = await setUp();
    await kubelet.start();
    const { seen } = watch(reporter);
    await ended(1);
    expect(seen).toEqual([web]);

    kubelet.pods = [holding("web", 1n), holding("job", 4n)];
    pods.byName.set("job", "u-job");
    pods.happen();
    await clock.step(debounceMs - 1);
    expect(kubelet.lists).toBe(1);
    await clock.step(1);
    await until("the second content", () => seen.length === 2);
    expect(seen[1]).toEqual([["default/web/u-web: 1"], ["default/job/u-job: 1"]]);
  });

  it("gives a claimed device its place a little after its driver has connected", async () => {
    const { kubelet, reporter, clock, devices, ended } = await setUp();
    const claimResources = [{ driverName: "gpu.example.com", poolName: "worker-1", deviceName: "gpu-0" }];
    const containers = [{ name: "main", dynamicResources: [{ claimResources }] }];
    kubelet.pods = [{ namespace: "default", name: "web", containers }];
    await kubelet.start();
    const { seen, stop } = watch(reporter);
    await ended(1);
    const parents = async () => {
      const zones = fields(await reporter.getReportContent(noAbort)).TopologyZone as TopologyZone[];
      const isDevice = ({ type }: TopologyZone) => type === "DRADevice";
      const nodes = zones.flatMap(({ children = [] }) => children);
      return [
        ...zones.filter(isDevice).map(() => "the machine"),
        ...nodes.filter(({ children }) => children?.some(isDevice)).map(({ name }) => `node ${name}`),
      ];
    };
    expect(await parents()).toEqual(["the machine"]);

    devices.becomeKnown({ "resource.kubernetes.io/numaNode": { int: 1 } });
    await clock.step(debounceMs);
    await until("the second content", () => seen.length === 2);
    expect(await parents()).toEqual(["node 1"]);
    await stop();
    expect(devices.callbacks.size).toBe(0);
  });

  it("asks once for many events, and again for those that come while it asks", async () => {
    const { kubelet, reporter, clock, pods, ended } = await setUp();
    await kubelet.start();
    const { seen } = watch(reporter);
    await ended(1);
    for (let at = 0; at < 10; at++) {
      pods.happen();
      await clock.step(debounceMs / 20);
    }
    await clock.step(debounceMs);
    await ended(2);
    expect(kubelet.lists).toBe(2);

    const { promise, resolve } = Promise.withResolvers<Uint8Array>();
    kubelet.answerList = () => promise;
    pods.happen();
    await clock.step(debounceMs);
    await until("the kubelet is asked", () => kubelet.lists === 3);
    pods.happen();
    kubelet.answerList = undefined;
    pods.byName.delete("web");
    resolve(new Uint8Array());
    await ended(3);
    pods.byName.set("web", "u-web");
    await clock.step(debounceMs);
    await ended(4);
    expect(seen).toEqual([web, [[], []], web]);
  });

  it("yields nothing while nothing changes, and reads periodically", async () => {
    const { kubelet, reporter, clock, ended } = await setUp();
    await kubelet.start();
    const { seen } = watch(reporter);
    await until("the first content", () => seen.length === 1);
    for (let round = 2; round < 5; round++) {
      await ended(round - 1);
      await clock.step(resyncIntervalMs);
      await until("the kubelet is asked", () => kubelet.lists === round);
    }
    expect(seen).toHaveLength(1);
  });

  it("retries soon while the kubelet is unavailable, and continues", async () => {
    const { kubelet, reporter, clock, log, ended } = await setUp();
    await kubelet.start();
    const { seen } = watch(reporter);
    await until("the first content", () => seen.length === 1);
    await ended(1);
    await kubelet.stop();
    await clock.step(resyncIntervalMs);
    await ended(2);
    await clock.step(retryIntervalMs);
    await ended(3);
    expect(log.warn).toHaveBeenCalledTimes(1);
    await kubelet.start();
    await clock.step(retryIntervalMs);
    await ended(4);
    expect(log.info).toHaveBeenCalledTimes(1);
    expect(log.warn).toHaveBeenCalledTimes(1);
    expect(seen).toHaveLength(1);
  });

  it("serves the fetcher from its last reading, but not while the kubelet is unavailable", async () => {
    const { kubelet, reporter, clock, pods, ended } = await setUp();
    await kubelet.start();
    const { seen, stop } = watch(reporter);
    await until("the first content", () => seen.length === 1);
    expect(holdings(await reporter.getReportContent(noAbort))).toEqual(web);
    expect(kubelet.lists).toBe(1);
    await ended(1);
    await kubelet.stop();
    pods.happen();
    await clock.step(debounceMs);
    await ended(2);
    await expect(reporter.getReportContent(noAbort)).rejects.toMatchObject({ code: "unavailable" });
    await kubelet.start();
    await stop();
    await reporter.getReportContent(noAbort);
    await reporter.getReportContent(noAbort);
    expect(kubelet.lists).toBe(3);
  });

  it("gives again what it gave before where a poll gave something else in between", async () => {
    const { kubelet, reporter, clock, pods, ended } = await setUp();
    await kubelet.start();
    const { seen } = watch(reporter);
    await ended(1);
    kubelet.pods = [];
    pods.byName.delete("web");
    await clock.step(resyncIntervalMs);
    await ended(2);
    expect(seen).toEqual([web, [[], []]]);

    // The poll reads by itself, for the last reading is too old.
    kubelet.pods = [holding("web", 1n)];
    pods.byName.set("web", "u-web");
    kubelet.answerList = async () => Promise.reject(new ServerError(Status.UNAVAILABLE, "not now"));
    await clock.step(resyncIntervalMs);
    await ended(3);
    kubelet.answerList = undefined;
    expect(holdings(await reporter.getReportContent(noAbort))).toEqual(web);
    kubelet.pods = [];
    pods.byName.delete("web");
    pods.happen();
    await clock.step(debounceMs);
    await ended(5);
    expect(seen).toEqual([web, [[], []], [[], []]]);
  });

  it("ends with the signal's reason and leaves nothing behind", async () => {
    const { kubelet, reporter, clock, pods, ended } = await setUp();
    await kubelet.start();
    const { seen, stop } = watch(reporter);
    await until("the first content", () => seen.length === 1);
    await ended(1);
    expect(pods.readers).toBe(1);
    expect(await stop()).toMatchObject({ message: "test ends" });
    expect(pods.readers).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it("goes by time alone where changes can't be followed", async () => {
    const { kubelet, reporter, clock, pods, log, ended } = await setUp();
    vi.spyOn(pods, "changes").mockImplementation(() => {
      throw new Error("no log");
    });
    await kubelet.start();
    const { seen } = watch(reporter);
    await until("the first content", () => seen.length === 1);
    expect(log.warn).toHaveBeenCalledTimes(1);
    await ended(1);
    await clock.step(resyncIntervalMs);
    await until("the kubelet is asked", () => kubelet.lists === 2);
  });
});
