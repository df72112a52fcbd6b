import { type DevicePool, serveDeviceDriver } from "../sdk/index.ts";
import { createDevApiServer, type ReceivedRequest } from "../src/devcluster/index.ts";
import {
  checkPools,
  encodeSlice,
  framedDeviceDriver,
  PoolReader,
  planSlices,
  storedSlice,
} from "../src/devices/index.ts";
import { ListAndWatchDevicesResponse } from "../src/gen/nodekeeper/devices/v1alpha1/api.ts";
import { silentLogger, systemClock } from "../src/lib/index.ts";
import { AgentProcess } from "./agent-process.ts";
import { type Figure, percentile } from "./figures.ts";
import { RawDriver } from "./raw-driver.ts";

const DEVICES = 10_000;
const NODE = "bench";
const DRIVER = "accelerators.example.com";

/** The budgets of devices: first publication, one change among many, planning, nothing changed, memory. */
export async function benchDevices(quick: boolean): Promise<Figure[]> {
  return [...benchPlanning(quick), ...(await benchPublishing(quick)), ...(await benchMemory(quick))];
}

function pool(count: number, tick = 0): DevicePool {
  return {
    name: NODE,
    devices: Array.from({ length: count }, (_, at) => ({
      name: `accelerator-${at}`,
      attributes: {
        model: { string: "alpha" },
        driverVersion: { version: "1.4.2" },
        index: { int: BigInt(at) },
        numaNode: { int: BigInt(at % 2) },
        changes: { int: BigInt(at === count >> 1 ? tick : 0) },
        healthy: { bool: true },
      },
      capacity: { memory: { value: "40Gi" }, cores: { value: "108" } },
    })),
  };
}

function bytesOf(tick: number): Uint8Array {
  const message = ListAndWatchDevicesResponse.fromPartial({ pools: [pool(DEVICES, tick)] });
  return ListAndWatchDevicesResponse.encode(message).finish();
}

/** In this process: from a message's bytes to what is to be written. */
function benchPlanning(quick: boolean): Figure[] {
  const { decode } = framedDeviceDriver.methods.listAndWatchDevices.responseType;
  const messages = [bytesOf(0), bytesOf(1)];
  const reader = new PoolReader({ nodeName: NODE });
  const input = { driver: DRIVER, nodeName: NODE };
  const first = reader.read(decode(messages[0]!));
  const { creates } = planSlices({ ...input, pools: first.pools, stored: [] });
  const stored = creates.map(({ name, spec }) =>
    storedSlice("v1", encodeSlice("v1", { name, uid: name }, spec)),
  );
  const plans: number[] = [];
  const same: number[] = [];
  const unchanged: number[] = [];
  const rounds = quick ? 30 : 100;
  for (let round = 0; round < rounds; round++) {
    const { pools } = reader.read(decode(messages[0]!));
    const begun = performance.now();
    planSlices({ ...input, pools, stored });
    unchanged.push(performance.now() - begun);
    const changed = reader.read(decode(messages[1]!));
    const planned = performance.now();
    const plan = planSlices({ ...input, pools: changed.pools, stored });
    plans.push(performance.now() - planned);
    const again = Buffer.from(messages[0]!);
    const looked = performance.now();
    if (Buffer.compare(again, messages[0]!) !== 0) throw new Error("the same bytes");
    same.push(performance.now() - looked);
    if (plan.updates.length !== 1) throw new Error("one changed device is one changed slice");
    reader.read(decode(messages[0]!));
  }
  const whole = performance.now();
  checkPools(
    first.pools.map(({ name, nodes, devices }) => ({
      name,
      nodes,
      sharedCounters: [],
      devices: devices.map(({ device }) => device),
    })),
  );
  return [
    {
      name: "planning 10,000 devices, one changed, median",
      value: percentile(plans, 0.5),
      unit: "ms",
      budget: 20,
    },
    { name: "planning 10,000 devices, one changed, slowest", value: Math.max(...plans), unit: "ms" },
    {
      name: "nothing changed: recognizing the message of 10,000 devices, median",
      value: percentile(same, 0.5),
      unit: "ms",
      budget: 5,
    },
    { name: "planning 10,000 devices, all the same, median", value: percentile(unchanged, 0.5), unit: "ms" },
    { name: "checking 10,000 devices that are not known yet", value: performance.now() - whole, unit: "ms" },
  ];
}

async function benchPublishing(quick: boolean): Promise<Figure[]> {
  return await withAgent(async ({ agent, writes }) => {
    // Made beforehand: what a driver needs for a message is its own.
    const messages = [bytesOf(0), bytesOf(1)];
    const driver = new RawDriver(messages[0]!);
    await driver.serve(agent.plugins, DRIVER);
    try {
      await until(() => writes.length >= 79);
      const first = writes[0]!;
      const last = writes.at(-1)!;
      const perSecond = ((writes.length - 1) * 1_000) / (last.at - first.at);
      await systemClock.sleep(2_000);
      const delays: number[] = [];
      for (let round = 0; round < (quick ? 20 : 100); round++) {
        const before = writes.length;
        const begun = driver.send(messages[(round + 1) % 2]!);
        await until(() => writes.length > before);
        delays.push(writes.at(-1)!.at - begun);
        // Beyond the debounce: what comes within it waits for its end.
        await systemClock.sleep(400);
      }
      const before = writes.length;
      const idle = agent.cpuSeconds();
      for (let round = 0; round < 10; round++) {
        // The same again: another buffer, the same bytes.
        driver.send(Buffer.from(messages[0]!));
        await systemClock.sleep(500);
      }
      return [
        {
          name: "first publication of 10,000 devices, writes a second (at least 200)",
          value: perSecond,
          unit: "/s",
        },
        {
          name: "one changed device among 10,000 to its write, p50",
          value: percentile(delays, 0.5),
          unit: "ms",
        },
        {
          name: "the same, p99",
          value: percentile(delays, 0.99),
          unit: "ms",
          budget: 50,
        },
        {
          name: "writes for 10 messages in which nothing changed",
          value: writes.length - before,
          unit: "",
          budget: 0,
        },
        {
          name: "CPU of such a message, receiving it included",
          value: (agent.cpuSeconds() - idle) * 100,
          unit: "ms",
        },
      ];
    } finally {
      driver.stop();
    }
  });
}

async function benchMemory(quick: boolean): Promise<Figure[]> {
  return await withAgent(async ({ agent, writes }) => {
    const drivers = Array.from({ length: 16 }, (_, at) =>
      serveDeviceDriver({
        name: `driver-${at}.example.com`,
        socketDir: agent.plugins,
        devices: async function* (signal) {
          for (let tick = 0; ; tick++) {
            yield [pool(1_000, tick)];
            await systemClock.sleep(2_000 + at * 37, signal);
          }
        },
      }),
    );
    try {
      await until(() => writes.length >= 16 * 8);
      await systemClock.sleep(quick ? 20_000 : 60_000);
      return [
        {
          name: "RSS, 16 drivers of 1,000 devices, each changing every 2 s",
          value: agent.rssMb(),
          unit: "MB",
          budget: 130,
        },
      ];
    } finally {
      await Promise.all(drivers.map((driver) => driver.stop()));
    }
  });
}

interface Bench {
  agent: AgentProcess;
  /** Writes of slices as they came. */
  writes: { at: number; path: string }[];
}

async function withAgent<T>(work: (bench: Bench) => Promise<T>): Promise<T> {
  const writes: Bench["writes"] = [];
  const onRequest = ({ method, path }: ReceivedRequest) => {
    if (method !== "GET" && path.includes("resourceslices")) writes.push({ at: performance.now(), path });
  };
  const server = createDevApiServer({ clock: systemClock, logger: silentLogger, onRequest });
  await server.start();
  server.seedNode(NODE);
  const agent = new AgentProcess();
  try {
    await server.writeKubeconfig(agent.kubeconfig);
    await agent.start({ "kube-api-qps": "1000", "kube-api-burst": "1000" });
    return await work({ agent, writes });
  } finally {
    await agent.remove();
    await server.stop();
  }
}

async function until(check: () => boolean): Promise<void> {
  for (const endsAt = performance.now() + 60_000; !check(); await systemClock.sleep(2)) {
    if (performance.now() > endsAt) throw new Error("the benchmark waited in vain");
  }
}
