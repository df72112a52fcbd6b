import { eventually } from "@nodekeeper/testing/until";
import { expect } from "vitest";
import type { UpstreamCase } from "./case.ts";
import type { CaseDriverOptions } from "./case-driver.ts";
import type { RunRow } from "./row.ts";

const shared: NonNullable<CaseDriverOptions["devices"]> = [
  {
    name: "device-0",
    allowMultipleAllocations: true,
    capacity: {
      memory: {
        value: "40Gi",
        requestPolicy: { default: "10Gi", validRange: { min: "10Gi", step: "10Gi" } },
      },
    },
  },
];
const share = { exactly: { capacity: { requests: { memory: "20Gi" } } } };
const all = Array.from({ length: 4 }, (_, at) => `device-${at}`);

/** A driver and a running pod whose device is healthy. */
async function withHealthyPod(own: UpstreamCase) {
  const driver = await own.driver();
  await own.pod([driver], { stays: true });
  await own.untilPhase("Running");
  await own.untilHealth("Healthy");
  return driver;
}

async function withShares(own: UpstreamCase, options: CaseDriverOptions, requests: number): Promise<void> {
  const driver = await own.driver(options);
  await own.pod([driver], { requests, ...(options.devices ? share : {}) });
  await own.untilPhase("Succeeded");
  const shareIds = driver.shareIds;
  await own.delete();
  await own.until(driver, "unprepare succeeded");
  await own.untilDeleted();
  expect(new Set(shareIds).size).toBe(requests);
  expect(shareIds.every(Boolean)).toBe(options.devices !== undefined);
}

export const healthRows: readonly RunRow[] = [
  {
    upstream: "should reflect device health changes in the Pod's status",
    driver: "reports its devices healthy, unhealthy, healthy",
    kubelet: "runs",
    expected: "allocatedResourcesStatus of the pod follows",
    async run(own) {
      const driver = await withHealthyPod(own);
      driver.setUnhealthy(...all);
      await own.untilHealth("Unhealthy");
      driver.setUnhealthy();
      await own.untilHealth("Healthy");
    },
  },
  {
    upstream: "should update health to Unknown when plugin stops and recover upon restart",
    driver: "stops, and starts again",
    kubelet: "runs",
    expected: "allocatedResourcesStatus is Unknown, then Healthy",
    async run(own) {
      const driver = await withHealthyPod(own);
      await driver.stop();
      await own.untilHealth("Unknown");
      await driver.start();
      await own.untilHealth("Healthy");
    },
  },
  {
    upstream: "should automatically reconnect both DRA and Health API after connection drop",
    driver: "stops, and starts again",
    kubelet: "runs",
    expected: "another pod runs, and its health follows the driver's reports",
    async run(own) {
      const driver = await withHealthyPod(own);
      await driver.stop();
      await own.untilHealth("Unknown");
      await driver.start();
      const second = await own.pod([driver], { name: `${own.name}-second`, stays: true });
      await own.untilPhase("Running", second);
      await own.untilHealth("Healthy", second);
      driver.setUnhealthy(...all);
      await own.untilHealth("Unhealthy", second);
    },
  },
  {
    upstream: "should handle concurrent DRA operations and health monitoring without connection issues",
    driver: "reports the devices of three pods healthy, then unhealthy",
    kubelet: "runs",
    expected: "all pods run, and the health of each follows",
    async run(own) {
      const driver = await own.driver();
      const names = await Promise.all(
        [0, 1, 2].map((at) => own.pod([driver], { name: `${own.name}-${at}`, stays: true })),
      );
      for (const name of names) await own.untilPhase("Running", name);
      expect(driver.count("prepare succeeded")).toBeGreaterThanOrEqual(names.length);
      for (const name of names) await own.untilHealth("Healthy", name);
      driver.setUnhealthy(...all);
      for (const name of names) await own.untilHealth("Unhealthy", name);
    },
  },
  {
    upstream: "should reflect device health changes for devices with ShareID",
    driver: "reports a shared device healthy, unhealthy, healthy",
    kubelet: "runs",
    expected: "allocatedResourcesStatus of the pod follows",
    async run(own) {
      const driver = await own.driver({ devices: shared });
      await own.pod([driver], { stays: true, ...share });
      await own.untilPhase("Running");
      await own.untilHealth("Healthy");
      expect(driver.shareIds).toEqual([expect.any(String)]);
      driver.setUnhealthy(...all);
      await own.untilHealth("Unhealthy");
      driver.setUnhealthy();
      await own.untilHealth("Healthy");
    },
  },
  ...(
    [
      ["without ShareID", {}, 1],
      ["with a ShareID", { devices: shared }, 1],
      ["same device with two ShareIDs", { devices: shared }, 2],
    ] as const
  ).map(([title, options, requests]) => ({
    upstream: `must be functional with the specified allocation results: ${title}`,
    driver: options && "devices" in options ? "shares one device" : "serves",
    kubelet: "runs",
    expected: "the pod succeeds, is deleted, and its devices are unprepared; each share has its own ID",
    run: (own: UpstreamCase) => withShares(own, options, requests),
  })),
];

/** For a kubelet without the feature gate ResourceHealthStatus. */
export const withoutHealthRow: RunRow = {
  upstream: "should not add health status to Pod when feature gate is disabled",
  driver: "reports its devices unhealthy",
  kubelet: "runs without ResourceHealthStatus",
  expected: "pods run, and have no allocatedResourcesStatus",
  async run(own) {
    const driver = await own.driver();
    await own.pod([driver], { stays: true });
    await own.untilPhase("Running");
    driver.setUnhealthy(all[0]!);
    const tainted = ({ spec }: { spec?: { devices: Array<{ taints?: unknown[] }> } }) =>
      spec!.devices.some(({ taints }) => taints);
    await eventually(async () => expect((await own.slices(driver)).some(tainted)).toBe(true));
    // Another pod shows that the kubelet has worked on since.
    const second = await own.pod([driver], { name: `${own.name}-second` });
    await own.untilPhase("Succeeded", second);
    for (const name of [own.name, second]) expect(await own.health(name)).toEqual([]);
  },
};
