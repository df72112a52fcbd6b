import { eventually } from "@nodekeeper/testing/until";
import { expect } from "vitest";
import type { RunRow } from "./row.ts";

export const claimRows: readonly RunRow[] = [
  {
    upstream: "must process pod created when kubelet is not running",
    driver: "serves",
    kubelet: "starts after the pod was created",
    expected: "the pod is Pending while the kubelet is down, then runs",
    restarts: true,
    async run(own) {
      const driver = await own.driver();
      await own.restartKubelet(async () => {
        await own.pod([driver]);
        expect(await own.phase()).toBe("Pending");
      });
      await own.untilPhase("Succeeded");
    },
  },
  {
    upstream: "must keep pod in pending state if NodePrepareResources times out",
    driver: "does not answer prepare",
    kubelet: "runs",
    expected: "the pod is Pending with an Event that names the driver; it runs once the driver answers",
    async run(own) {
      const driver = await own.driver();
      driver.hold("prepare");
      await own.pod([driver], { stays: true });
      const failed = (message: string) => message.includes(driver.name) && message.includes("NK");
      await eventually(async () => expect((await own.events()).some(failed)).toBe(true));
      expect(await own.phase()).toBe("Pending");
      driver.relent();
      await own.untilPhase("Running");
    },
  },
  {
    upstream: "must run pod if NodePrepareResources fails and then succeeds",
    driver: "fails prepare, then succeeds",
    kubelet: "runs",
    expected: "the pod is Pending, then runs",
    async run(own) {
      const driver = await own.driver();
      driver.failing = "prepare";
      await own.pod([driver]);
      await own.until(driver, "prepare failed");
      expect(await own.phase()).toBe("Pending");
      driver.relent();
      await own.until(driver, "prepare succeeded");
      await own.untilPhase("Succeeded");
    },
  },
  {
    upstream: "must run pod if NodeUnprepareResources fails and then succeeds",
    driver: "fails unprepare, then succeeds",
    kubelet: "runs",
    expected: "unprepare is called again, and the pod succeeds",
    async run(own) {
      const driver = await own.driver();
      driver.failing = "unprepare";
      await own.pod([driver]);
      await own.until(driver, "prepare succeeded");
      await own.until(driver, "unprepare failed");
      driver.relent();
      await own.until(driver, "unprepare succeeded");
      await own.untilPhase("Succeeded");
    },
  },
  {
    upstream: "must retry NodePrepareResources after Kubelet restart",
    driver: "fails prepare until the kubelet is down",
    kubelet: "restarts",
    expected: "prepare is called again, and the pod runs",
    restarts: true,
    async run(own) {
      const driver = await own.driver();
      driver.failing = "prepare";
      await own.pod([driver]);
      await own.until(driver, "prepare failed");
      expect(await own.phase()).toBe("Pending");
      await own.restartKubelet(() => driver.relent());
      await own.until(driver, "prepare succeeded");
      await own.untilPhase("Succeeded");
    },
  },
  {
    upstream: "must retry NodeUnprepareResources after Kubelet restart",
    driver: "fails unprepare until the kubelet is down",
    kubelet: "restarts",
    expected: "unprepare is called again, and the pod succeeds",
    restarts: true,
    async run(own) {
      const driver = await own.driver();
      driver.failing = "unprepare";
      await own.pod([driver]);
      await own.until(driver, "unprepare failed");
      await own.restartKubelet(() => driver.relent());
      await own.until(driver, "unprepare succeeded");
      await own.untilPhase("Succeeded");
    },
  },
  {
    upstream: "must call NodeUnprepareResources for deleted pod",
    driver: "fails unprepare until after the pod's deletion",
    kubelet: "runs",
    expected: "unprepare is called until it succeeds",
    async run(own) {
      const driver = await own.driver();
      driver.failing = "unprepare";
      await own.pod([driver]);
      await own.until(driver, "unprepare failed");
      await own.delete();
      await own.until(driver, "unprepare failed", driver.count("unprepare failed") + 1);
      driver.relent();
      await own.until(driver, "unprepare succeeded");
      await own.untilDeleted();
    },
  },
  {
    upstream: "must call NodeUnprepareResources for deleted pod after Kubelet restart",
    driver: "fails unprepare until after the restart",
    kubelet: "restarts after the pod was deleted with --force",
    expected: "unprepare is called until it succeeds",
    restarts: true,
    async run(own) {
      const driver = await own.driver();
      driver.failing = "unprepare";
      await own.pod([driver]);
      await own.until(driver, "unprepare failed");
      await own.delete(own.name, "?gracePeriodSeconds=0");
      await own.until(driver, "unprepare failed", driver.count("unprepare failed") + 1);
      await own.restartKubelet();
      await own.until(driver, "unprepare failed", driver.count("unprepare failed") + 1);
      driver.relent();
      await own.until(driver, "unprepare succeeded");
    },
  },
  {
    upstream: "must not call NodePrepareResources for deleted pod after Kubelet restart",
    driver: "answers prepare after the kubelet is down",
    kubelet: "restarts after the pod was deleted",
    expected: "the pod ends without another call of prepare, and nothing stays prepared",
    restarts: true,
    async run(own) {
      const driver = await own.driver();
      driver.hold("prepare");
      await own.pod([driver], { stays: true });
      await own.until(driver, "prepare called");
      expect(await own.phase()).toBe("Pending");
      // A call that takes too long is repeated by the kubelet.
      let called = 0;
      await own.restartKubelet(async () => {
        called = driver.count("prepare called");
        await own.delete();
        driver.relent();
      });
      await own.untilDeleted();
      await eventually(() => expect(driver.prepared).toEqual([]));
      expect(driver.count("prepare called")).toBe(called);
    },
  },
];
