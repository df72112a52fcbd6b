import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { serveDeviceDriver } from "@nodekeeper/sdk";
import { createDevApiServer, type ReceivedRequest } from "@nodekeeper/testing";
import {
  encodeSlice,
  PlanMemory,
  PoolReader,
  planSlices,
  readMessage,
  storedSlice,
} from "../packages/agent/src/devices/index.ts";
import { AgentProcess } from "./agent-process.ts";
import { BENCH_NODE, devicePool, messageBytes } from "./device-messages.ts";
import { type Figure, percentile } from "./figures.ts";
import { RawDriver } from "./raw-driver.ts";

const DRIVER = "accelerators.example.com";

/** The budgets of devices: first publication, one change among many, planning, nothing changed, memory. */
export async function benchDevices(quick: boolean): Promise<Figure[]> {
  return [...benchPlanning(quick), ...(await benchPublishing(quick)), ...(await benchMemory(quick))];
}

/** In this process: from a message's bytes to what is to be written. */
function benchPlanning(quick: boolean): Figure[] {
  const messages = [messageBytes(0), messageBytes(1)];
  const newReader = () => new PoolReader({ driver: DRIVER, nodeName: BENCH_NODE });
  const reader = newReader();
  const input = { driver: DRIVER, nodeName: BENCH_NODE, memory: new PlanMemory() };
  const first = reader.read(readMessage(messages[0]!));
  const stored = planSlices({ ...input, pools: first.pools, stored: [] })
    .flatMap(({ writes }) => writes)
    .map(({ name, spec }) => storedSlice("v1", encodeSlice("v1", { name, uid: name }, spec)));
  const reads: number[] = [];
  const plans: number[] = [];
  const same: number[] = [];
  const unchanged: number[] = [];
  const rounds = quick ? 30 : 100;
  for (let round = 0; round < rounds; round++) {
    const { pools } = reader.read(readMessage(messages[0]!));
    const startedAt = performance.now();
    planSlices({ ...input, pools, stored });
    unchanged.push(performance.now() - startedAt);
    const arrived = performance.now();
    const changed = reader.read(readMessage(messages[1]!));
    reads.push(performance.now() - arrived);
    const planned = performance.now();
    const plan = planSlices({ ...input, pools: changed.pools, stored });
    plans.push(performance.now() - planned);
    const again = Buffer.from(messages[0]!);
    const looked = performance.now();
    if (Buffer.compare(again, messages[0]!) !== 0) throw new Error("the same bytes");
    same.push(performance.now() - looked);
    if (plan[0]?.writes.length !== 1) throw new Error("one changed device is one changed slice");
    reader.read(readMessage(messages[0]!));
  }
  const whole = performance.now();
  newReader().read(readMessage(messages[0]!));
  const firstRead = performance.now() - whole;
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
    { name: "reading 10,000 devices that are not known yet", value: firstRead, unit: "ms" },
    { name: "reading 10,000 devices, one changed, median", value: percentile(reads, 0.5), unit: "ms" },
  ];
}

async function benchPublishing(quick: boolean): Promise<Figure[]> {
  return await withAgent(async ({ agent, writes }) => {
    // Made beforehand: what a driver needs for a message is its own.
    const messages = [messageBytes(0), messageBytes(1)];
    const driver = new RawDriver();
    await driver.serve(agent.plugins, DRIVER);
    const rounds = quick ? 20 : 100;
    const change = async (messageOf: (round: number) => Uint8Array) => {
      const delays: number[] = [];
      const cpu = agent.cpuSeconds();
      for (let round = 1; round <= rounds; round++) {
        const before = writes.length;
        const sentAt = driver.send(messageOf(round));
        await until(() => writes.length > before);
        delays.push(writes.at(-1)!.at - sentAt);
        // Beyond the pause between two rounds of writes.
        await systemClock.sleep(400);
      }
      return { delays, cpuMs: ((agent.cpuSeconds() - cpu) * 1_000) / rounds };
    };
    try {
      await driver.watched;
      const sentAt = driver.send(messages[0]!);
      await until(() => writes.length >= 79);
      const first = writes[0]!;
      const last = writes.at(-1)!;
      const perSecond = ((writes.length - 1) * 1_000) / (last.at - first.at);
      await systemClock.sleep(2_000);
      const whole = await change((round) => messages[round % 2]!);
      driver.send(messages[0]!);
      await systemClock.sleep(1_000);
      const before = writes.length;
      const idle = agent.cpuSeconds();
      for (let round = 0; round < 10; round++) {
        // The same again: another buffer, the same bytes.
        driver.send(Buffer.from(messages[0]!));
        await systemClock.sleep(500);
      }
      const figure = (name: string, value: number, unit: string, budget?: number): Figure => ({
        name,
        value,
        unit,
        ...(budget !== undefined && { budget }),
      });
      return [
        figure("10,000 devices: message to first write", first.at - sentAt, "ms", 150),
        figure("first publication of 10,000 devices, writes a second (at least 200)", perSecond, "/s"),
        figure("one changed device among 10,000 to its write, p50", percentile(whole.delays, 0.5), "ms", 12),
        figure("the same, p99", percentile(whole.delays, 0.99), "ms", 25),
        figure("the same, own CPU", whole.cpuMs, "ms", 10),
        figure("writes for 10 messages in which nothing changed", writes.length - before, "", 0),
        figure("CPU of such a message, receiving it included", (agent.cpuSeconds() - idle) * 100, "ms"),
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
            yield [devicePool(1_000, tick)];
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
  const server = createDevApiServer({ clock: systemClock, log: silentLogger, checkFields: false, onRequest });
  await server.start();
  server.seedNode(BENCH_NODE);
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
    if (performance.now() > endsAt) throw new Error("the benchmark waited without success");
  }
}
