import { defaultConfiguration } from "@nodekeeper/api/settings";
import type { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { expect, vi } from "vitest";
import { rootOf, twoSockets } from "../../../../../../test/fixtures/machines.ts";
import { Host } from "../../../host/index.ts";
import type { DeviceAttributes, DeviceAttributesLookup, ReportedDevices } from "../claimed-zones.ts";
import { KubeletReporter } from "../kubelet-reporter.ts";
import { createKubeletReporterMetrics } from "../metrics.ts";
import type { PodUidLookup, RunningPods } from "../pod-uids.ts";
import type { KubeletReporterSettings } from "../settings.ts";
import type { TopologyZone } from "../zones.ts";
import { FakeKubelet } from "./fake-kubelet.ts";

const defaults = defaultConfiguration().reporting.kubelet;
export const { resyncInterval: resyncIntervalMs, debounce: debounceMs } = defaults;
const cleanups: (() => Promise<void>)[] = [];

/** Stops everything that `setUp` and `watch` started. */
export async function tearDown(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/** The runtime's pods, set by a test. */
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

/** A driver with devices that a test sets. */
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

/** Creates a reporter with a kubelet, a machine with two sockets, and the pod web on CPU 1. */
export async function setUp(changed: Partial<KubeletReporterSettings> = {}) {
  const root = await rootOf(twoSockets);
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
    // The host uses the real clock, because its deadline bounds real reads.
    host: new Host({ root }),
    clock,
    log,
    metrics,
    pods,
    devices,
  });
  const metric = async (name: string) => (await registry.getSingleMetricAsString(name)).split("\n").slice(2);
  /** Waits until this number of readings has ended, successful or not, and until the watch waits for its interval. */
  const ended = async (readings: number) => {
    await until(`reading ${readings} has ended`, async () => {
      const { values } = await metrics.readings.get();
      return values.reduce((sum, { value }) => sum + value, 0) === readings;
    });
    await clock.step(0);
    expect(clock.timers).toBe(1);
  };
  return { root, kubelet, clock, log, pods, devices, reporter, metric, ended };
}

/** Returns a pod with one exclusive CPU, as the kubelet lists it. */
export const holding = (name: string, cpu: bigint) => ({
  namespace: "default",
  name,
  containers: [{ name: "main", cpuIds: [cpu] }],
});

/** Never aborts. */
export const noAbort = new AbortController().signal;

/** Returns the fields of the CustomNodeResource by name. */
export function fields({ content }: GetReportContentResponse): Record<string, unknown> {
  expect(content).toHaveLength(1);
  expect(content[0]?.groupVersionKind?.kind).toBe("CustomNodeResource");
  return Object.fromEntries(
    content[0]!.field.map(({ fieldType, fieldName, value }) => {
      expect(fieldType).toBe(1);
      return [fieldName, JSON.parse(new TextDecoder().decode(value))];
    }),
  );
}

/** Returns "consumer: CPUs" of each NUMA node. */
export function holdings(response: GetReportContentResponse): string[][] {
  const zones = fields(response).TopologyZone as TopologyZone[];
  return zones
    .flatMap(({ children }) => children ?? [])
    .map(({ allocations = [] }) =>
      allocations.map(({ consumer, requests }) => `${consumer}: ${requests.cpu}`),
    );
}

/** Watches in the background. `seen` contains the contents so far. */
export function watch(reporter: KubeletReporter) {
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

/** The `holdings` of the pod web. */
export const web = [["default/web/u-web: 1"], []];
