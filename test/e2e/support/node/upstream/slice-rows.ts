import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { expect } from "vitest";
import type { ApiObject } from "../../admin-client.ts";
import { Child } from "../../child.ts";
import { resources } from "../claims.ts";
import type { UpstreamCase } from "./case.ts";
import type { Row, RunRow } from "./row.ts";

const TAINT = "nodekeeper.dev/driver-disconnected";

const taintsOf = (slices: readonly ApiObject[]): string[] =>
  slices.flatMap(({ spec }) =>
    spec.devices.flatMap(({ taints = [] }: ApiObject) => taints.map(({ key }: ApiObject) => key)),
  );

async function removedAfterStop(own: UpstreamCase, sockets: 1 | 2): Promise<void> {
  const driver = sockets === 2 ? own.newSplitDriver() : own.newDriver();
  await driver.registration?.start();
  await driver.start();
  await eventually(async () => expect(await own.slices(driver)).toHaveLength(1));
  await driver.stop();
  await own.untilNoSlices(driver);
}

async function keptInQuickRestart(own: UpstreamCase, sockets: 1 | 2): Promise<void> {
  const driver = sockets === 2 ? own.newSplitDriver() : own.newDriver();
  await driver.registration?.start();
  await driver.start();
  await eventually(async () => expect(await own.slices(driver)).toHaveLength(1));
  const [before] = await own.slices(driver);
  await driver.stop();
  await eventually(async () => expect(taintsOf(await own.slices(driver))).toContain(TAINT));
  await driver.start();
  await eventually(async () => expect(taintsOf(await own.slices(driver))).toEqual([]));
  const [after] = await own.slices(driver);
  expect(after!.metadata.uid).toBe(before!.metadata.uid);
  expect(after!.spec.devices).toEqual(before!.spec.devices);
}

const bothSockets = (row: Omit<RunRow, "run">, run: (own: UpstreamCase, sockets: 1 | 2) => Promise<void>) =>
  ([2, 1] as const).map((sockets) => ({
    ...row,
    upstream: `${row.upstream}: ${sockets === 2 ? "2 sockets" : "1 common socket"}`,
    run: (own: UpstreamCase) => run(own, sockets),
  }));

export const sliceRows: readonly Row[] = [
  {
    upstream: "ResourceSlice must be removed on kubelet startup",
    driver: "serves; another one, which has ended, has slices for this node and another",
    kubelet: "restarts",
    expected:
      "only this node's slice of the ended driver is removed, and those of the running driver are back",
    restarts: true,
    async run(own) {
      const { admin } = own.on.cluster;
      const driver = await own.driver();
      const [before] = await own.slices(driver);
      const ended = own.newDriver({ suffix: "-ended" });
      const nodes = [own.on.node.name, `${own.on.node.name}-other`];
      await own.restartKubelet(async () => {
        for (const nodeName of nodes)
          await admin.create(`${resources}/resourceslices`, {
            apiVersion: "resource.k8s.io/v1",
            kind: "ResourceSlice",
            metadata: { name: `${own.name}-${nodeName}` },
            spec: {
              nodeName,
              driver: ended.name,
              pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
              devices: [],
            },
          });
        expect(await own.slices(ended)).toHaveLength(2);
      });
      await eventually(async () => {
        expect((await own.slices(ended)).map(({ spec }) => spec.nodeName)).toEqual([nodes[1]]);
        const [after] = await own.slices(driver);
        expect(after?.metadata.uid).not.toBe(before!.metadata.uid);
        expect(after?.spec.devices).toEqual(before!.spec.devices);
      });
      await admin.delete(`${resources}/resourceslices/${own.name}-${nodes[1]}`);
    },
  },
  {
    upstream: "ResourceSlice must be removed after plugin unregistration",
    driver: "stops, with its registration",
    kubelet: "runs",
    expected: "its slices are removed",
    async run(own) {
      const driver = await own.driver();
      await driver.stop();
      await own.untilNoSlices(driver);
    },
  },
  ...bothSockets(
    {
      upstream: "ResourceSlice must be removed if plugin stops after registration",
      driver: "stops serving",
      kubelet: "runs",
      expected: "its slices are removed",
    },
    removedAfterStop,
  ),
  {
    upstream: "ResourceSlice must be removed if plugin is unresponsive after registration",
    driver: "is frozen",
    kubelet: "runs",
    expected: "its devices are tainted NoSchedule; once it is killed, its slices are removed",
    differs:
      "a driver without a stream has no slices; those of a driver that is connected but does not answer stay, tainted, because it may continue",
    async run(own) {
      const driver = own.newDriver();
      const directory = join(own.on.cluster.directory, own.name);
      const child = new Child({
        name: driver.name,
        command: process.execPath,
        args: [
          join(import.meta.dirname, "../../held-driver.ts"),
          driver.name,
          own.on.agent.pluginDirectory,
          directory,
        ],
        logFile: `${directory}.log`,
      });
      child.start();
      try {
        await eventually(async () => expect(await own.slices(driver)).toHaveLength(1));
        process.kill(child.pid, "SIGSTOP");
        await eventually(async () => expect(taintsOf(await own.slices(driver))).toContain(TAINT));
      } finally {
        await child.kill();
      }
      await own.untilNoSlices(driver);
    },
  },
  ...bothSockets(
    {
      upstream: "ResourceSlice must not be removed if plugin restarts quickly enough",
      driver: "stops, and starts again before the slices would be removed",
      kubelet: "runs",
      expected: "the slice stays the same object, with the same devices in the end",
      differs: "meanwhile the devices are tainted NoSchedule, so that no pod waits for a driver that is away",
    },
    keptInQuickRestart,
  ),
];
