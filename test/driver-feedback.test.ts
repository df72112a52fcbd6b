import { type DevicePool, type DriverProblem, serveDeviceDriver } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { beforeEach, expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";

const node = useClaimsNode({ devicesMinWriteInterval: "0s" });

beforeEach(() => node.start());

it("a driver with an invalid device is told so, also by an agent that was restarted, and that it has repaired it", async () => {
  const told: DriverProblem[][] = [];
  let pools: DevicePool[] = [{ devices: [{ name: "gpu-0" }, { name: "GPU_1" }] }];
  let changed = Promise.withResolvers<void>();
  const driver = serveDeviceDriver({
    name: "gpu.example.com",
    socketDir: node.agent.pluginDir,
    async *devices() {
      for (;;) {
        const next = changed.promise;
        yield pools;
        await next;
      }
    },
    onProblems: (problems) => void told.push(problems),
  });
  node.drivers.push(driver);
  const problem = { errorId: "NK1503", pool: NODE, device: "GPU_1", since: expect.any(Date) };
  await until("told", () => told.length === 1);
  expect(told[0]).toMatchObject([{ ...problem, message: expect.stringContaining("name") }]);
  await node.agent.stop();
  await node.start();
  await until("told by the next agent", () => told.length === 2);
  expect(told[1]).toMatchObject([problem]);
  pools = [{ devices: [{ name: "gpu-0" }, { name: "gpu-1" }] }];
  changed.resolve();
  changed = Promise.withResolvers();
  await until("told the end", () => told.length === 3);
  expect(told[2]).toEqual([]);
});
