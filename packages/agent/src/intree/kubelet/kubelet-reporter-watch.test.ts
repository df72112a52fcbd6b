import { until } from "@nodekeeper/testing/until";
import { ServerError, Status } from "nice-grpc";
import { afterEach, describe, expect, it, vi } from "vitest";
import { RETRY_INTERVAL_MS } from "./kubelet-reporter.ts";
import {
  debounceMs,
  fields,
  holding,
  holdings,
  noAbort,
  resyncIntervalMs,
  setUp,
  tearDown,
  watch,
  web,
} from "./testing/reporter-setup.ts";

afterEach(tearDown);

import type { TopologyZone } from "./zones.ts";

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
    await clock.step(RETRY_INTERVAL_MS);
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
    for (let reading = 2; reading < 2 + 60_000 / RETRY_INTERVAL_MS; reading++) {
      await ended(reading);
      expect(seen).toEqual([web]);
      await clock.step(RETRY_INTERVAL_MS);
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
    await clock.step(RETRY_INTERVAL_MS);
    await ended(3);
    expect(log.warn).toHaveBeenCalledTimes(1);
    await kubelet.start();
    await clock.step(RETRY_INTERVAL_MS);
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

  it("reads by time alone where changes can't be followed", async () => {
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
