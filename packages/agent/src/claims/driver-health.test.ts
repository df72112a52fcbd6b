import { join } from "node:path";
import { DeviceHealthReportDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { childScope, silentLogger, systemClock, untilAborted } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { createServer } from "nice-grpc";
import { expect, it } from "vitest";
import { DriverHealth } from "./driver-health.ts";
import { ClaimWorld, DRIVER, NODE, serveDriver } from "./testing/claim-world.ts";

const hot = { pool: "", device: "gpu-0", healthy: false, message: "hot", taintEffect: "NoSchedule" };
const cool = { ...hot, healthy: true, message: "" };

function setUp() {
  const world = new ClaimWorld();
  let changes = 0;
  let refused: string[] = [];
  const onChange = () => changes++;
  const health = new DriverHealth({
    driver: DRIVER,
    nodeName: NODE,
    onChange,
    onRefused: (problems) => {
      refused = problems.map(({ message }) => message);
    },
    clock: systemClock,
    log: silentLogger,
  });
  /** A connection whose driver reports this once, or never. */
  const connect = async (report?: (typeof hot)[]) => {
    const path = join(world.directory, "driver.sock");
    const server = await serveDriver(path, {
      health: {
        async *watchDeviceHealth(_request, { signal }) {
          if (report) yield { devices: report };
          await untilAborted(signal);
        },
      },
    });
    const scope = childScope();
    const following = health.follow(path, DeviceHealthReportDefinition.fullName, scope.signal);
    return async () => {
      scope.abort();
      health.disconnected();
      await following;
      server.stop();
    };
  };
  return { world, health, connect, changes: () => changes, refused: () => refused };
}

const tainted = [[`${NODE}/gpu-0`, [{ key: `${DRIVER}/unhealthy`, effect: "NoSchedule" }]]];

it("taints stay while the driver is disconnected, and until it reports again", async () => {
  const { world, health, connect, changes } = setUp();
  using _world = world;
  const first = await connect([hot]);
  await until("reported", () => health.isKnown);
  expect([...health.taints]).toEqual(tainted);
  await first();
  expect([...health.taints]).toEqual(tainted);
  // For the kubelet nothing is known of it.
  expect(health.unhealthy).toEqual([]);
  const second = await connect();
  expect([...health.taints]).toEqual(tainted);
  await second();
  expect(changes()).toBe(1);
  const third = await connect([cool]);
  await until("reported again", () => health.taints.size === 0);
  expect(changes()).toBe(2);
  await third();
});

it("one watch of the kubelet sees the reports of all connections", async () => {
  const { world, health, connect } = setUp();
  using _world = world;
  const seen: boolean[][] = [];
  const watching = new AbortController();
  const watch = (async () => {
    for await (const { devices } of health.watch(watching.signal))
      seen.push(devices.map(({ healthy }) => healthy));
  })();
  const first = await connect([hot]);
  await until("unhealthy", () => seen.some(([healthy]) => healthy === false));
  await first();
  const second = await connect([cool]);
  await until("healthy", () => seen.some(([healthy]) => healthy === true));
  await second();
  watching.abort();
  await watch.catch(() => {});
});

it("a watch of the kubelet ends with the health that it is of, so that it is started again on the next one", async () => {
  const { world, health, connect } = setUp();
  using _world = world;
  const end = await connect([hot]);
  const seen: number[] = [];
  const watch = (async () => {
    for await (const { devices } of health.watch(new AbortController().signal)) seen.push(devices.length);
  })();
  await until("unhealthy", () => seen.includes(1));
  health.end();
  await watch;
  await end();
});

it("a message with hundreds of thousands of empty devices is refused before it is decoded", async () => {
  const { world, health } = setUp();
  using _world = world;
  const bytes = Buffer.concat(Array.from({ length: 500_000 }, () => Buffer.from([0x0a, 0])));
  const { watchDeviceHealth } = DeviceHealthReportDefinition.methods;
  const responseType = { ...watchDeviceHealth.responseType, encode: () => ({ finish: () => bytes }) };
  const server = createServer();
  server.add(
    {
      ...DeviceHealthReportDefinition,
      methods: { watchDeviceHealth: { ...watchDeviceHealth, responseType } },
    } as unknown as typeof DeviceHealthReportDefinition,
    {
      async *watchDeviceHealth() {
        yield {};
      },
    },
  );
  const path = join(world.directory, "driver.sock");
  await server.listen(`unix:${path}`);
  const scope = childScope();
  const following = health.follow(path, DeviceHealthReportDefinition.fullName, scope.signal);
  await until("refused", () => health.problem?.includes("more than 50000 devices"));
  expect(health.isKnown).toBe(false);
  scope.abort();
  await following;
  server.forceShutdown();
});

it("entries that are refused are named, and the others count", async () => {
  const { world, health, connect, refused } = setUp();
  using _world = world;
  const end = await connect([
    { ...hot, taintEffect: "NoExec" },
    { ...hot, device: "gpu-1" },
    { ...hot, pool: NODE },
  ]);
  await until("reported", () => health.isKnown);
  expect(refused()).toEqual([
    `health refused: device "${NODE}/gpu-0": taint_effect: "NoExec" is not "NoSchedule" or "NoExecute"; no taint is added`,
    `health refused: device "${NODE}/gpu-0": device: it is reported twice; the last one counts`,
  ]);
  expect([...health.taints.keys()].sort()).toEqual([`${NODE}/gpu-0`, `${NODE}/gpu-1`]);
  await end();
  const next = await connect([hot]);
  await until("corrected", () => refused().length === 0);
  await next();
});
