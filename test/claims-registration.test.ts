import { rmSync } from "node:fs";
import { join } from "node:path";
import { type DeviceHealth, serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { DRIVER, useClaimsDriver } from "./support/claims-driver.ts";
import { NODE } from "./support/cluster.ts";

const SLICES = "resourceslices.resource.k8s.io";

const { node, serve, claim, claimsOfDriver } = useClaimsDriver();

describe("the kubelet's registration", () => {
  it("holds through the agent's restart, and the new process has a socket of its own", async () => {
    await serve();
    const wanted = claim("kept");
    await node.kubelet.prepare(DRIVER, wanted);
    const before = (await node.kubelet.untilRegistered(DRIVER)).socket;
    await node.agent.stop();
    expect(node.kubelet.sockets()).toEqual([]);
    await node.start();
    const after = (await node.kubelet.untilRegistered(DRIVER)).socket;
    expect(after).not.toBe(before);
    expect((await node.kubelet.unprepare(DRIVER, wanted))[wanted.uid]).toEqual({ error: "" });
  });

  it("comes again when the registry's directory is emptied", async () => {
    await serve();
    const { socket } = await node.kubelet.untilRegistered(DRIVER);
    rmSync(join(node.directory, "reg", socket));
    await until("the socket is there again", () => node.kubelet.sockets().includes(socket));
    await node.kubelet.untilRegistered(DRIVER);
  });

  it("ends for a driver that was removed when the kubelet has unprepared its last claim", async () => {
    await node.agent.stop();
    await node.start({ devicesWipeDelay: "100ms" });
    const driver = await serve();
    const wanted = claim("last");
    await node.kubelet.prepare(DRIVER, wanted);
    await driver.stop();
    // The agent may notice a moment later that the driver is disconnected: the kubelet asks again.
    await eventually(async () =>
      expect((await node.kubelet.unprepare(DRIVER, wanted))[wanted.uid]).toEqual({ error: "" }),
    );
    await eventually(() => expect(node.kubelet.sockets()).toEqual([]));
  });

  it("is left to a driver that keeps its own plugin", async () => {
    const driver = serveDeviceDriver({
      name: DRIVER,
      socketDir: node.agent.pluginDir,
      ownKubeletPlugin: true,
      async *devices() {
        yield [{ devices: [{ name: "device-0" }] }];
      },
    });
    node.drivers.push(driver);
    await until("left alone", async () => (await claimsOfDriver())?.kubelet === "ownPlugin");
    expect(node.kubelet.sockets()).toEqual([]);
  });

  it("a driver with nothing to prepare: devices without any change to containers", async () => {
    const driver = serveDeviceDriver({
      name: DRIVER,
      socketDir: node.agent.pluginDir,
      async *devices() {
        yield [{ devices: [{ name: "device-0" }] }];
      },
    });
    node.drivers.push(driver);
    await node.kubelet.untilRegistered(DRIVER);
    // The kubelet of a server that keeps it does not call the plugin.
    await eventually(() =>
      expect(node.cluster.server.store.list(SLICES)).toMatchObject([{ spec: { skipNodeOperations: ["*"] } }]),
    );
    const wanted = claim("plain");
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    expect(answer[wanted.uid]).toMatchObject({
      error: "",
      devices: [{ deviceName: "device-0", cdiDeviceIds: [] }],
    });
    expect((await node.kubelet.unprepare(DRIVER, wanted))[wanted.uid]).toEqual({ error: "" });
  });
});

describe("devices that no pod could use", () => {
  const taints = () =>
    node.cluster.server.store
      .list(SLICES)
      // biome-ignore lint/suspicious/noExplicitAny: the shape of a slice
      .flatMap(({ spec }: any) => spec.devices.map(({ taints = [] }: any) => taints));

  it("a driver that is disconnected for a while has its devices tainted until it is back", async () => {
    await node.agent.stop();
    await node.start({ devicesTaintDelay: "100ms" });
    const first = await serve();
    await node.kubelet.untilRegistered(DRIVER);
    await until("published", () => taints().length === 2);
    await first.stop();
    await eventually(() =>
      expect(taints()).toMatchObject([
        [{ key: "nodekeeper.dev/driver-disconnected", effect: "NoSchedule" }],
        [{ key: "nodekeeper.dev/driver-disconnected", effect: "NoSchedule" }],
      ]),
    );
    await serve();
    await node.kubelet.untilRegistered(DRIVER);
    await eventually(() => expect(taints()).toEqual([[], []]));
  });

  it("health reaches the kubelet, and taints where the driver asks for one", async () => {
    let report = Promise.withResolvers<DeviceHealth[]>();
    await serve({
      async *health() {
        yield [
          { device: "device-0", healthy: true },
          { device: "device-1", healthy: true },
        ];
        yield await report.promise;
        report = Promise.withResolvers();
        yield await report.promise;
      },
    });
    const { versions } = await node.kubelet.untilRegistered(DRIVER);
    expect(versions).toContain("v1.DRAResourceHealth");
    expect(versions).toContain("v1alpha1.DRAResourceHealth");
    const ending = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { devices } of node.kubelet.health(DRIVER, ending.signal))
        seen.push(
          devices
            .map(
              ({ device, health, message }) =>
                `${device?.poolName}/${device?.deviceName}:${health}${message}`,
            )
            .join(),
        );
    })();
    await until("healthy", () => seen.includes(`${NODE}/device-0:1,${NODE}/device-1:1`));
    report.resolve([
      { device: "device-0", healthy: true },
      { device: "device-1", healthy: false, message: "too hot", taintEffect: "NoSchedule" },
    ]);
    await until("unhealthy", () => seen.includes(`${NODE}/device-0:1,${NODE}/device-1:2too hot`));
    await eventually(() =>
      expect(taints()).toMatchObject([[], [{ key: `${DRIVER}/unhealthy`, effect: "NoSchedule" }]]),
    );
    report.resolve([
      { device: "device-0", healthy: true },
      { device: "device-1", healthy: true },
    ]);
    await eventually(() => expect(taints()).toEqual([[], []]));
    ending.abort();
    await watching.catch(() => {});
  });

  it("the taint of an unhealthy device outlives restarts of the driver and of the agent", async () => {
    const broken = { device: "device-0", healthy: false, taintEffect: "NoSchedule" as const };
    // A slow start adds the taint of a driver that is disconnected.
    const unhealthy = expect.arrayContaining([expect.objectContaining({ key: `${DRIVER}/unhealthy` })]);
    /** A driver with so many devices, and what it reports of their health, if anything. */
    const serveWith = async (count: number, health?: DeviceHealth[]) => {
      const driver = await serve({
        async *devices() {
          yield [{ devices: Array.from({ length: count }, (_, at) => ({ name: `device-${at}` })) }];
        },
        async *health(signal) {
          if (health) yield health;
          else await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        },
      });
      await node.kubelet.untilRegistered(DRIVER);
      return driver;
    };
    const expectTainted = (count: number) =>
      eventually(() => {
        expect(taints()).toHaveLength(count);
        expect(taints()[0]).toEqual(unhealthy);
      });
    const first = await serveWith(1, [broken]);
    await expectTainted(1);
    await first.stop();
    const second = await serveWith(2);
    await expectTainted(2);
    await node.agent.stop();
    expect(taints()[0]).toEqual(unhealthy);
    await second.stop();
    await node.start();
    // Whatever is written, its taint is never missing.
    const written: unknown[] = [];
    node.cluster.fault = ({ path, method }) => {
      if (method !== "GET" && path.includes("resourceslices")) written.push(taints()[0]);
      return undefined;
    };
    await serveWith(3, [broken]);
    await expectTainted(3);
    for (const before of written) expect(before).toEqual(unhealthy);
  });
});
