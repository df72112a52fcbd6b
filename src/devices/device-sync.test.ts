import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server, ServerError, Status } from "nice-grpc";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  createDevApiServer,
  type DevApiServer,
  type Fault,
  type ReceivedRequest,
  type RequestInfo,
} from "../devcluster/index.ts";
import { NodeDefinition } from "../gen/dra/v1alpha3/api.ts";
import {
  type DeepPartial,
  DeviceDriverDefinition,
  type ListAndWatchDevicesResponse,
} from "../gen/nodekeeper/devices/v1alpha1/api.ts";
import {
  createKubeClient,
  createKubeMetrics,
  type KubeObject,
  loadClusterAccess,
  Watcher,
} from "../kube/index.ts";
import { Registry, silentLogger, stopped, systemClock } from "../lib/index.ts";
import { type DeviceSettings, DeviceSync, defaultDeviceSettings } from "./index.ts";

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
const eventually = (check: () => unknown, timeout = 8_000) => vi.waitFor(check, { timeout, interval: 10 });
const NODE = "worker-1";
const SLICES = "resourceslices.resource.k8s.io";

/** A driver on a real socket that says what the test says. */
class TestDriver {
  readonly endpoint: string;
  #message: DeepPartial<ListAndWatchDevicesResponse> = { pools: [] };
  #wake = Promise.withResolvers<void>();
  #server: Server | undefined;
  #mode: "stream" | "end" | "fail" = "stream";
  watches = 0;

  constructor(folder: string, name: string) {
    this.endpoint = join(folder, `${name}.sock`);
  }

  async start(): Promise<void> {
    const server = createServer();
    const self = this;
    server.add(DeviceDriverDefinition, {
      async *listAndWatchDevices(_request, { signal }) {
        self.watches++;
        for (;;) {
          if (self.#mode === "fail") throw new ServerError(Status.INTERNAL, "out of order");
          yield self.#message;
          if (self.#mode === "end") return;
          await Promise.race([
            self.#wake.promise,
            new Promise((_, reject) =>
              signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
            ),
          ]);
        }
      },
    });
    server.add(NodeDefinition, {
      async *nodeListAndWatchResources() {
        yield { resources: [{ namedResources: { instances: [{ name: "gpu-0", attributes: [] }] } }] };
      },
    });
    await server.listen(`unix:${this.endpoint}`);
    this.#server = server;
  }

  /** Devices of the pool of the node; a number makes as many. */
  say(
    devices: number | { name: string; taints?: { key: string; effect: string }[] }[],
    mode: "stream" | "end" | "fail" = "stream",
  ) {
    const list =
      typeof devices === "number"
        ? Array.from({ length: devices }, (_, at) => ({ name: `device-${at}` }))
        : devices;
    this.#message = { pools: [{ name: NODE, devices: list }] };
    this.#mode = mode;
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  kill(): void {
    this.#server?.forceShutdown();
  }
}

interface Setup {
  settings?: Partial<DeviceSettings>;
  faults?: (request: RequestInfo) => Fault | undefined;
  server?: DevApiServer;
  recheckMs?: number;
  /** Changes what the server stores, as one does whose feature gates are off. */
  drops?: (slice: KubeObject) => KubeObject;
}

async function setUp(setup: Setup = {}) {
  const folder = mkdtempSync(join(tmpdir(), "nkdev-"));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const writes: ReceivedRequest[] = [];
  let faults = setup.faults;
  const server =
    setup.server ??
    createDevApiServer({
      clock: systemClock,
      logger: silentLogger,
      faults: (request) => faults?.(request),
      onRequest: (request) =>
        void (request.method !== "GET" && request.path.includes("resourceslices") && writes.push(request)),
    });
  if (!setup.server) {
    await server.start();
    ends.push(() => server.stop());
    server.seedNode(NODE);
  }
  const kubeconfig = join(folder, "kubeconfig");
  await server.writeKubeconfig(kubeconfig);
  const registry = new Registry();
  const common = { clock: systemClock, log: silentLogger };
  const metrics = createKubeMetrics(registry);
  const access = await loadClusterAccess({ kubeconfig, environment: {} });
  const client = createKubeClient({
    ...common,
    metrics,
    access,
    version: "test",
    qps: 1_000,
    burst: 1_000,
    deadlineMs: 2_000,
  });
  const { drops } = setup;
  if (drops) {
    const [create, update] = [client.create.bind(client), client.update.bind(client)];
    client.create = (resource, object, options) => create(resource, drops(object), options);
    client.update = (resource, object, options) => update(resource, drops(object), options);
  }
  const events: string[] = [];
  const sync = new DeviceSync({
    ...common,
    client,
    watch: (resource, selectors, handler) =>
      new Watcher({ ...common, metrics, client, resource, ...selectors, handler }),
    nodeName: NODE,
    settings: () => ({
      ...defaultDeviceSettings,
      minWriteIntervalMs: 20,
      wipeDelayMs: 200,
      settleMs: 300,
      ...setup.settings,
    }),
    notify: ({ message }) => void events.push(message),
    registry,
    ...(setup.recheckMs ? { recheckMs: setup.recheckMs } : {}),
  });
  const controller = new AbortController();
  const running = sync.run(controller.signal);
  const stop = async () => {
    controller.abort(stopped("test is over"));
    await running;
    client.close();
  };
  ends.push(stop);
  let generation = 0;
  return {
    folder,
    server,
    sync,
    stop,
    writes,
    events,
    setFaults: (next: typeof faults) => {
      faults = next;
    },
    async driver(name: string): Promise<TestDriver> {
      const driver = new TestDriver(folder, name);
      await driver.start();
      ends.push(() => driver.kill());
      return driver;
    },
    register: async (name: string, { endpoint }: TestDriver, versions = ["nodekeeper.devices.v1alpha1"]) => {
      const registration = {
        type: "DRAPlugin",
        name,
        endpoint,
        versions,
        registrationSocket: `${endpoint}-reg`,
        generation: ++generation,
      };
      sync.handler.validate(registration);
      await sync.handler.register(registration, controller.signal);
      return registration;
    },
    slices: () => server.store.list(SLICES),
    devices: () =>
      server.store
        .list(SLICES)
        .flatMap((slice) => devicesOf(slice))
        .sort(),
  };
}

function specOf(slice: KubeObject) {
  return slice.spec as {
    driver: string;
    nodeName: string;
    pool: { generation: number; resourceSliceCount: number };
    devices?: { name: string }[];
  };
}
function devicesOf(slice: KubeObject): string[] {
  return (specOf(slice).devices ?? []).map(({ name }) => name);
}

describe("DeviceSync", () => {
  it("publishes what a driver streams, owned by the Node, and nothing when nothing changed", async () => {
    const { driver, register, slices, devices, writes, server, sync } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say(200);
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(200));
    const node = server.store.get("nodes", NODE);
    expect(slices().map(specOf)).toMatchObject([
      { driver: "gpu.example.com", nodeName: NODE, pool: { generation: 1, resourceSliceCount: 2 } },
      { driver: "gpu.example.com", nodeName: NODE, pool: { generation: 1, resourceSliceCount: 2 } },
    ]);
    expect(slices()[0]?.metadata.ownerReferences).toMatchObject([
      { kind: "Node", name: NODE, uid: node?.metadata.uid },
    ]);
    gpu.say(200);
    gpu.say(200);
    await systemClock.sleep(150);
    expect(writes).toHaveLength(2);
    gpu.say(199);
    await eventually(() => expect(devices()).toHaveLength(199));
    expect(writes).toHaveLength(3);
    await eventually(() =>
      expect(sync.status()).toMatchObject([
        { state: "streaming", devices: 199, slices: [{ devices: 100 }, { devices: 99 }] },
      ]),
    );
    expect(sync.healthChecks().every((check) => check.check().ok)).toBe(true);
  });

  it("takes the protocol of 1.30", async () => {
    const { driver, register, devices } = await setUp();
    const old = await driver("old.example.com");
    await register("old.example.com", old, ["1.0.0"]);
    await eventually(() => expect(devices()).toEqual(["gpu-0"]));
  });

  it("leaves drivers of today's versions to themselves", async () => {
    const { driver, register, sync, slices } = await setUp();
    await register("new.example.com", await driver("new.example.com"), ["v1.DRAPlugin", "v1beta1.DRAPlugin"]);
    expect(sync.status()).toMatchObject([{ state: "none" }]);
    await systemClock.sleep(400);
    expect(slices()).toEqual([]);
  });

  it("keeps what a driver said when its stream ends, and when it breaks", async () => {
    const { driver, register, devices, sync } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say(3, "end");
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    await eventually(() => expect(sync.status()).toMatchObject([{ state: "ended" }]));
    const other = await driver("nic.example.com");
    other.say(2);
    await register("nic.example.com", other);
    await eventually(() => expect(devices()).toHaveLength(5));
    other.say(2, "fail");
    await eventually(() =>
      expect(sync.status()[1]).toMatchObject({ state: "failing", error: /out of order/ }),
    );
    expect(devices()).toHaveLength(5);
  });

  it("keeps a driver's slices over a new registration, until its first message", async () => {
    const { driver, register, devices, writes, slices } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say(3);
    const first = await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    const uid = slices()[0]?.metadata.uid;
    const again = await driver("gpu2");
    again.say(4);
    await register("gpu.example.com", again);
    await eventually(() => expect(devices()).toHaveLength(4));
    expect(slices()[0]?.metadata.uid).toBe(uid);
    expect(writes.filter(({ method }) => method === "DELETE")).toEqual([]);
    expect(first.generation).toBe(1);
  });

  it("removes the slices of a driver that went after a delay, unless it comes back", async () => {
    const { driver, register, devices, sync, writes } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say(3);
    const registration = await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    sync.handler.deregister(registration, "socket is gone");
    await systemClock.sleep(100);
    const second = await register("gpu.example.com", gpu);
    await systemClock.sleep(250);
    expect(devices()).toHaveLength(3);
    expect(writes.filter(({ method }) => method === "DELETE")).toEqual([]);
    sync.handler.deregister(second, "socket is gone");
    await eventually(() => expect(devices()).toEqual([]));
    await eventually(() => expect(sync.status()).toEqual([]));
  });

  it("after a restart of the agent: settles before it removes, changes nothing of a driver that is back", async () => {
    const first = await setUp();
    const [gpu, nic] = [await first.driver("gpu.example.com"), await first.driver("nic.example.com")];
    gpu.say(3);
    nic.say(2);
    await first.register("gpu.example.com", gpu);
    await first.register("nic.example.com", nic);
    await eventually(() => expect(first.devices()).toHaveLength(5));
    await first.stop();
    const before = first.writes.length;
    const second = await setUp({ server: first.server });
    await second.register("gpu.example.com", gpu);
    await systemClock.sleep(150);
    expect(second.devices()).toHaveLength(5);
    await eventually(() => expect(second.devices()).toHaveLength(3));
    expect(first.writes.slice(before).map(({ method }) => method)).toEqual(["DELETE"]);
  });

  it("does not touch slices that it did not publish", async () => {
    const { server, slices } = await setUp();
    const foreign = (name: string, nodeName: string) => ({
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceSlice",
      metadata: { name },
      spec: {
        driver: "gpu.example.com",
        nodeName,
        pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
        devices: [],
      },
    });
    const base = "/apis/resource.k8s.io/v1/resourceslices";
    for (const object of [foreign("mine", NODE), foreign("other", "worker-2")])
      await post(server, base, object);
    await systemClock.sleep(600);
    expect(slices()).toHaveLength(2);
  });

  it("puts back at once what somebody removed or changed", async () => {
    const { driver, register, devices, server, slices } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say(3);
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    const [slice] = slices();
    const path = `/apis/resource.k8s.io/v1/resourceslices/${slice!.metadata.name}`;
    const begun = performance.now();
    await send(server, "DELETE", path);
    await eventually(() =>
      expect(slices()[0]?.metadata.uid ?? slice!.metadata.uid).not.toBe(slice!.metadata.uid),
    );
    expect(performance.now() - begun).toBeLessThan(1_000);
    const [now] = slices();
    await send(server, "PUT", path, { ...now, spec: { ...(now!.spec as object), devices: [] } });
    await eventually(() => expect(devices()).toHaveLength(3));
  });

  it("goes on with the others when one slice is refused for ever, and says which", async () => {
    // The first of two slices, again and again.
    let posts = 0;
    let isRefusing = true;
    const refused = ({ method, path }: RequestInfo) =>
      method === "POST" && path.includes("resourceslices") && ++posts !== 2 && isRefusing
        ? { status: 422, body: { kind: "Status", code: 422, reason: "Invalid", message: "no such thing" } }
        : undefined;
    const { driver, register, devices, sync, setFaults, events } = await setUp();
    setFaults(refused);
    const gpu = await driver("gpu.example.com");
    gpu.say(256);
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(128));
    await eventually(() =>
      expect(Object.values(sync.status()[0]!.refused)).toEqual([expect.stringMatching(/no such thing/)]),
    );
    await eventually(() => expect(events.join()).toMatch(/refuses slice/));
    // Tried again, and the other stays.
    await eventually(() => expect(posts).toBeGreaterThan(2));
    expect(devices()).toHaveLength(128);
    isRefusing = false;
    await eventually(() => expect(devices()).toHaveLength(256));
    await eventually(() => expect(sync.status()[0]!.refused).toEqual({}));
  });

  it("writes the newest when the API server is back, few times", async () => {
    const { driver, register, devices, setFaults, writes, sync } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say(3);
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    setFaults(({ method }) => (method === "GET" ? undefined : { status: 503, body: {} }));
    const before = writes.length;
    for (let count = 4; count < 40; count++) {
      gpu.say(count);
      await systemClock.sleep(20);
    }
    expect(sync.status()[0]!.writeError).toBeDefined();
    expect(writes.length - before).toBeLessThan(10);
    setFaults(undefined);
    await eventually(() => expect(devices()).toHaveLength(39));
  });

  it("holds back a bad device and a pool that is not of this node, and tells it", async () => {
    const { driver, register, devices, sync, events } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say([{ name: "good" }, { name: "Bad Name" }]);
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toEqual(["good"]));
    expect(sync.status()).toMatchObject([{ quarantined: 1, problems: [{ device: "Bad Name" }] }]);
    await eventually(() => expect(events).toHaveLength(1));
    gpu.say([{ name: "good" }, { name: "Bad Name" }]);
    await systemClock.sleep(100);
    expect(events).toHaveLength(1);
  });

  it("a driver that says that it has nothing, and then everything", async () => {
    const { driver, register, devices, slices } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say(0);
    await register("gpu.example.com", gpu);
    // A slice without devices tells that the driver is there.
    await eventually(() => expect(slices()).toHaveLength(1));
    gpu.say(1_000);
    await eventually(() => expect(devices()).toHaveLength(1_000));
    gpu.say(0);
    await eventually(() => expect(devices()).toEqual([]));
    expect(slices()).toHaveLength(1);
  });

  it("20,000 devices in one message, and one of them changed after that", async () => {
    const { driver, register, devices, writes } = await setUp();
    const gpu = await driver("gpu.example.com");
    gpu.say(20_000);
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(20_000), 20_000);
    const before = writes.length;
    gpu.say(19_999);
    await eventually(() => expect(devices()).toHaveLength(19_999));
    expect(writes.length - before).toBe(1);
  }, 30_000);

  it("holds back what would be given out wrongly where the server drops taints, and writes nothing for ever", async () => {
    const { driver, register, devices, sync, writes, events } = await setUp({
      drops: (slice) => {
        const spec = slice.spec as { devices?: { taints?: unknown }[] };
        return { ...slice, spec: { ...spec, devices: spec.devices?.map(({ taints, ...device }) => device) } };
      },
    });
    const gpu = await driver("gpu.example.com");
    gpu.say([
      { name: "good" },
      { name: "tainted", taints: [{ key: "example.com/broken", effect: "NoSchedule" }] },
    ]);
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toEqual(["good"]));
    expect(sync.status()).toMatchObject([
      { quarantined: 1, problems: [{ device: "tainted", message: /DRADeviceTaints/ }] },
    ]);
    await eventually(() => expect(events.join()).toMatch(/drops taints/));
    const before = writes.length;
    await systemClock.sleep(300);
    expect(writes).toHaveLength(before);
  });

  it("goes over to a better version of the API when the server has one", async () => {
    let isOld = true;
    const hides = ({ path }: RequestInfo) =>
      isOld && /^\/apis\/resource\.k8s\.io\/(v1|v1beta2)(\/|$)/.test(path)
        ? { status: 404, body: {} }
        : undefined;
    const { driver, register, devices, sync, writes } = await setUp({ faults: hides, recheckMs: 100 });
    const gpu = await driver("gpu.example.com");
    gpu.say(3);
    await register("gpu.example.com", gpu);
    await eventually(() => expect(devices()).toHaveLength(3));
    expect(sync.version).toBe("v1beta1");
    isOld = false;
    await eventually(() => expect(sync.version).toBe("v1"));
    await eventually(() => expect(sync.status()[0]?.slices).toHaveLength(1));
    gpu.say(4);
    await eventually(() => expect(devices()).toHaveLength(4));
    expect(writes.at(-1)?.path).toContain("/v1/");
    // What was published by the old version is the same by the new one.
    expect(writes).toHaveLength(2);
  });

  it("a driver that alternates a hundred times a second is written now and then, and last as it ends", async () => {
    const { driver, register, devices, writes } = await setUp({ settings: { minWriteIntervalMs: 200 } });
    const gpu = await driver("gpu.example.com");
    await register("gpu.example.com", gpu);
    for (let at = 0; at < 100; at++) {
      gpu.say(at % 2 === 0 ? 5 : 6);
      await systemClock.sleep(10);
    }
    gpu.say(7);
    await eventually(() => expect(devices()).toHaveLength(7));
    expect(writes.length).toBeLessThan(12);
  });
});

async function post(server: DevApiServer, path: string, body: unknown): Promise<void> {
  await send(server, "POST", path, body);
}

async function send(server: DevApiServer, method: string, path: string, body?: unknown): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "nkdev-"));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, "kubeconfig");
  await server.writeKubeconfig(kubeconfig);
  const access = await loadClusterAccess({ kubeconfig, environment: {} });
  const client = createKubeClient({
    clock: systemClock,
    log: silentLogger,
    metrics: createKubeMetrics(new Registry()),
    access,
    version: "test",
  });
  ends.push(() => client.close());
  const resource = (await client.resolve({
    group: "resource.k8s.io",
    version: "v1",
    kind: "ResourceSlice",
  }))!;
  const name = path.split("/").at(-1)!;
  if (method === "DELETE") await client.delete(resource, name);
  else if (method === "PUT") await client.update(resource, body as KubeObject);
  else await client.create(resource, body as KubeObject);
}
