import { eventually } from "@nodekeeper/testing/until";
import { expect } from "vitest";
import type { UpstreamCase } from "./case.ts";
import type { CaseDriver } from "./case-driver.ts";
import type { RunRow } from "./row.ts";

const start = async (own: UpstreamCase): Promise<[CaseDriver, CaseDriver]> => [
  await own.driver({ suffix: "-1" }),
  await own.driver({ suffix: "-2" }),
];

/** The kubelet's number of claims in use, by driver. */
async function claimsInUse({ on }: UpstreamCase, { name }: CaseDriver): Promise<number> {
  const { text } = await on.node.kubeletServer.get("/metrics");
  const metric = `dra_resource_claims_in_use{driver_name="${name}"} `;
  const line = (text as string).split("\n").find((each) => each.startsWith(metric));
  return Number(line?.slice(metric.length) ?? 0);
}

export const twoDriverRows: readonly RunRow[] = [
  {
    upstream: "must prepare and unprepare resources",
    driver: "two serve",
    kubelet: "runs",
    expected: "the pod succeeds, prepared and unprepared by both",
    async run(own) {
      const drivers = await start(own);
      await own.pod(drivers);
      await own.untilPhase("Succeeded");
      for (const driver of drivers) {
        expect(driver.count("prepare succeeded")).toBe(1);
        await own.until(driver, "unprepare succeeded");
      }
    },
  },
  {
    upstream: "must provide metrics",
    driver: "two serve",
    kubelet: "runs",
    expected: "the kubelet counts the claim as in use for both while the pod runs, and then for neither",
    async run(own) {
      const drivers = await start(own);
      const inUse = () => Promise.all(drivers.map((driver) => claimsInUse(own, driver)));
      await own.pod(drivers, { stays: true });
      await own.untilPhase("Running");
      expect(await inUse()).toEqual([1, 1]);
      await own.delete();
      await own.untilDeleted();
      expect(await inUse()).toEqual([0, 0]);
      for (const driver of drivers) expect(driver.count("unprepare succeeded")).toBe(1);
    },
  },
  {
    upstream: "must run pod if NodePrepareResources fails for one plugin and then succeeds",
    driver: "the second fails prepare, then succeeds",
    kubelet: "runs",
    expected: "the pod is Pending, then runs",
    async run(own) {
      const [first, second] = await start(own);
      second.failing = "prepare";
      await own.pod([first, second]);
      await own.until(second, "prepare failed");
      expect(await own.phase()).toBe("Pending");
      second.relent();
      await own.until(second, "prepare succeeded");
      await own.untilPhase("Succeeded");
    },
  },
  {
    upstream: "must run pod if NodeUnprepareResources fails for one plugin and then succeeds",
    driver: "the second fails unprepare, then succeeds",
    kubelet: "runs",
    expected: "unprepare is called again, and the pod succeeds",
    async run(own) {
      const [first, second] = await start(own);
      second.failing = "unprepare";
      await own.pod([first, second]);
      await own.until(second, "unprepare failed");
      second.relent();
      await own.until(second, "unprepare succeeded");
      await own.untilPhase("Succeeded");
      expect(first.prepared).toEqual([]);
    },
  },
  {
    upstream: "must run pod if NodePrepareResources is in progress for one plugin when Kubelet restarts",
    driver: "the first answers prepare after the restart",
    kubelet: "restarts",
    expected: "the pod runs, prepared by both",
    restarts: true,
    async run(own) {
      const [first, second] = await start(own);
      first.hold("prepare");
      await own.pod([first, second]);
      await own.until(first, "prepare called");
      await own.restartKubelet();
      expect(await own.phase()).toBe("Pending");
      first.relent();
      await own.until(second, "prepare succeeded");
      await own.untilPhase("Succeeded");
    },
  },
  {
    upstream:
      "must call NodeUnprepareResources again if it's in progress for one plugin when Kubelet restarts",
    driver: "the second answers unprepare after the restart",
    kubelet: "restarts",
    expected: "the pod succeeds, and nothing stays prepared",
    restarts: true,
    async run(own) {
      const [first, second] = await start(own);
      second.hold("unprepare");
      await own.pod([first, second]);
      await own.until(second, "unprepare called");
      await own.restartKubelet();
      second.relent();
      await own.until(second, "unprepare succeeded");
      await own.untilPhase("Succeeded");
      await eventually(() => expect([...first.prepared, ...second.prepared]).toEqual([]));
    },
  },
];
