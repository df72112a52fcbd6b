import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NodeDefinition } from "@nodekeeper/core/gen/dra/v1alpha3/api.ts";
import {
  type DeepPartial,
  type Device,
  DeviceDriverDefinition,
  type ListAndWatchDevicesResponse,
  type Pool,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  createKubeClient,
  createKubeMetrics,
  type KubeObject,
  type LeaseTimes,
  loadClusterAccess,
  Watcher,
  type WatchHandler,
} from "@nodekeeper/core/kube";
import { type Clock, LoopTurns, Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import {
  createDevApiServer,
  type DevApiServer,
  type Fault,
  type ReceivedRequest,
  type RequestInfo,
} from "@nodekeeper/testing";
import { createServer, type Server, ServerError, Status } from "nice-grpc";
import { defaultDeviceSettings } from "../../assembly/testing/defaults.ts";
import { DeviceSync } from "../index.ts";
import type { DeviceSettings } from "../sync/context.ts";
import { allocatable } from "./allocatable.ts";

const ends: (() => Promise<void> | void)[] = [];

/** Stops everything that a test has set up. */
export async function tearDown(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

export const NODE = "worker-1";
export const SLICES = "resourceslices.resource.k8s.io";

type StreamMode = "stream" | "end" | "fail" | "unimplemented" | "silent";

/** A driver on a real socket that reports what the test sets. */
export class TestDriver {
  readonly endpoint: string;
  #message: DeepPartial<ListAndWatchDevicesResponse> = { pools: [] };
  #wake = Promise.withResolvers<void>();
  #server: Server | undefined;
  #mode: StreamMode = "stream";
  watches = 0;
  /** Number of open streams. */
  open = 0;

  constructor(directory: string, name: string) {
    this.endpoint = join(directory, `${name}.sock`);
  }

  async start(): Promise<void> {
    const server = createServer();
    const self = this;
    server.add(DeviceDriverDefinition, {
      async *listAndWatchDevices(_request, { signal }) {
        self.watches++;
        self.open++;
        signal.addEventListener("abort", () => self.open--, { once: true });
        for (;;) {
          if (self.#mode === "unimplemented") throw new ServerError(Status.UNIMPLEMENTED, "no such thing");
          if (self.#mode === "silent") await self.#wake.promise;
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
        if (self.#mode === "unimplemented") throw new ServerError(Status.UNIMPLEMENTED, "no such thing");
        yield { resources: [{ namedResources: { instances: [{ name: "gpu-0", attributes: [] }] } }] };
      },
    });
    await server.listen(`unix:${this.endpoint}`);
    this.#server = server;
  }

  /** Reports pools. */
  reportPools(pools: DeepPartial<Pool>[]): void {
    this.#message = { pools };
    this.#mode = "stream";
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  /** Reports devices in the node's pool, or a number of generated devices. */
  report(devices: number | DeepPartial<Device>[], mode: StreamMode = "stream") {
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

/** Settings of an agent that prepares claims, so that it taints the devices of missing drivers after this time. */
export function taintingAfter(taintDelay: number): Partial<DeviceSettings> {
  return { taintDelay, kubeletPlugin: { ...defaultDeviceSettings.kubeletPlugin, enabled: true } };
}

export interface Setup {
  settings?: Partial<DeviceSettings>;
  faults?: (request: RequestInfo) => Fault | undefined;
  server?: DevApiServer;
  recheckMs?: number;
  /** Of the agent. Default `NODE`. */
  nodeName?: string;
  leaseTimes?: LeaseTimes;
  /** Whether the watch reports nothing after its first list. */
  deaf?: boolean;
  /** How far the agent's clock is ahead of the real one, milliseconds. */
  ahead?: () => number;
  /** Changes in place what the server stores, as a server with disabled feature gates does. */
  drops?: (slice: KubeObject) => void;
  /** The server's answer to a request with its body, as an admission webhook or policy does. */
  admit?: (request: ReceivedRequest) => Fault | undefined;
}

export async function setUp(setup: Setup = {}) {
  const directory = mkdtempSync(join(tmpdir(), "nkdev-"));
  ends.push(() => rmSync(directory, { recursive: true, force: true }));
  const writes: ReceivedRequest[] = [];
  const dryRuns: ReceivedRequest[] = [];
  let { faults, drops, admit } = setup;
  const server =
    setup.server ??
    createDevApiServer({
      checkFields: false,
      clock: systemClock,
      log: silentLogger,
      faults: (request) => faults?.(request),
      admit: (request) => {
        if (request.method === "GET" || !request.path.includes("resourceslices")) return undefined;
        const isDryRun = request.query.has("dryRun");
        (isDryRun ? dryRuns : writes).push(request);
        const refusal = admit?.(request);
        if (!refusal && request.body && request.method !== "DELETE") drops?.(request.body as KubeObject);
        return refusal;
      },
    });
  if (!setup.server) {
    await server.start();
    ends.push(() => server.stop());
    server.seedNode(NODE);
  }
  const kubeconfig = join(directory, "kubeconfig");
  await server.writeKubeconfig(kubeconfig);
  const registry = new Registry();
  const ahead = setup.ahead ?? (() => 0);
  const clock: Clock = {
    now: () => systemClock.now() + ahead(),
    monotonic: () => systemClock.monotonic() + ahead(),
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
    after: (ms, callback) => systemClock.after(ms, callback),
  };
  const common = { clock, log: silentLogger };
  const metrics = createKubeMetrics(registry);
  const access = await loadClusterAccess({ kubeconfig, environment: {} });
  const client = createKubeClient({
    ...common,
    metrics,
    access,
    version: "test",
    qps: 1_000,
    burst: 1_000,
    deadlineMs: 30_000,
  });
  const events: string[] = [];
  const sync = new DeviceSync(
    {
      ...common,
      client,
      watch: ({ handler, ...target }) =>
        new Watcher(
          { ...common, metrics, client },
          { ...target, handler: setup.deaf ? deafened(handler) : handler },
        ),
      nodeName: setup.nodeName ?? NODE,
      ...(setup.leaseTimes && { leaseTimes: setup.leaseTimes }),
      settings: () => ({
        ...defaultDeviceSettings,
        minWriteInterval: 20,
        wipeDelay: 200,
        settleTime: 300,
        ...setup.settings,
      }),
      notify: ({ message }) => void events.push(message),
      turns: new LoopTurns(clock),
      recheckMs: setup.recheckMs,
    },
    { registry },
  );
  const controller = new AbortController();
  const running = sync.run(controller.signal);
  const stop = async () => {
    controller.abort(stopped("test is over"));
    await running;
    client.close();
  };
  ends.push(stop);
  let generation = 0;
  async function driver(name: string): Promise<TestDriver> {
    const started = new TestDriver(directory, name);
    await started.start();
    ends.push(() => started.kill());
    return started;
  }
  async function register(
    name: string,
    { endpoint }: TestDriver,
    versions = ["nodekeeper.devices.v1alpha2"],
  ) {
    const registration = {
      type: "DRAPlugin",
      name,
      endpoint,
      versions,
      registrationSocket: `${endpoint}-reg`,
      uid: 0,
      generation: ++generation,
    };
    sync.handler.validate(registration);
    await sync.handler.register(registration, controller.signal);
    return registration;
  }
  return {
    directory,
    server,
    sync,
    stop,
    writes,
    dryRuns,
    events,
    setFaults: (next: typeof faults) => {
      faults = next;
    },
    setDrops: (next: Setup["drops"]) => {
      drops = next;
    },
    setAdmit: (next: Setup["admit"]) => {
      admit = next;
    },
    driver,
    register,
    /** Starts a driver that reports devices, as `report` does, and registers it. */
    async startDriver(name: string, ...reported: Parameters<TestDriver["report"]>): Promise<TestDriver> {
      const source = await driver(name);
      source.report(...reported);
      await register(name, source);
      return source;
    },
    slices: () => server.store.list(SLICES),
    /** The devices that kube-scheduler would allocate, sorted. */
    devices: () => allocatable(server.store.list(SLICES), NODE).devices.sort(),
    verdicts: () => allocatable(server.store.list(SLICES), NODE).pools,
  };
}

function deafened(handler: WatchHandler): WatchHandler {
  return { ...handler, onReplace: (...list) => handler.onReplace(...list), onUpsert() {}, onDelete() {} };
}

export function specOf(slice: KubeObject) {
  return slice.spec as {
    driver: string;
    nodeName: string;
    pool: { name: string; generation: number; resourceSliceCount: number };
    devices?: { name: string; taints?: { key: string; effect: string }[] }[];
  };
}

/** Returns the names of the devices in a request's slice. */
export function devicesIn({ body }: ReceivedRequest): string[] {
  return (specOf(body as KubeObject).devices ?? []).map(({ name }) => name);
}

/** A refusal as from API server validation. */
export const refusal = (message: string, status = 422): Fault => ({
  status,
  body: { kind: "Status", code: status, reason: status === 422 ? "Invalid" : "Forbidden", message },
});
