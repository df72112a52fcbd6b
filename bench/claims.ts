import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import {
  type Claim,
  DRAPluginDefinition,
  NodePrepareResourcesRequest,
  NodePrepareResourcesResponse,
  NodeUnprepareResourcesRequest,
} from "@nodekeeper/core/gen/dra/v1/api.ts";
import {
  PluginInfo,
  RegistrationDefinition,
  RegistrationStatus,
} from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { systemClock } from "@nodekeeper/core/lib";
import { agentEnvironment, agentOptions } from "../packages/agent/src/launch.ts";
import { AgentProcess } from "./agent-process.ts";
import { CLAIMS_DRIVER } from "./claims-driver.ts";
import { type Figure, percentile } from "./figures.ts";
import { cpuSecondsOf } from "./process-usage.ts";

export const CLAIMS = 30;
const WARM_UP_ROUNDS = 3;
// Within it the client's default rate of requests is there again.
const PAUSE_MS = 2_500;

/**
 * The budgets of preparing claims: 30 calls of the kubelet at once, each for one claim of one device. From the call to
 * the answer the agent reads the claim, asks the driver, and writes the CDI file and the record.
 */
export async function benchClaims(quick: boolean): Promise<Figure[]> {
  const agent = new AgentProcess();
  const { claims, cdi, stop } = await startClaims(agent);
  try {
    const registry = join(agent.directory, "r");
    await agent.start({
      "kube-api-qps": "20",
      "devices-kubelet-plugin-enabled": "true",
      "devices-kubelet-plugin-registry-directory": registry,
      "devices-kubelet-plugin-cdi-directory": cdi,
    });
    const kubelet = await register(registry);
    const { pid } = agent;
    const { atOnce, alone } = await atOnceAndAlone({ kubelet, pid, claims }, quick);
    const floors: Figure[] = [];
    for (const [mode, name] of [
      ["empty", "an empty call of the kubelet"],
      ["claim", "the same, and the request for the claim"],
      ["driver", "the same without it, and the call to the driver"],
      ["calls", "the calls of a claim alone: kubelet, API server, driver"],
    ] as const) {
      const floor = await measureFloor(mode, quick);
      floors.push(
        { name: `${name}, ${CLAIMS} at once, p50`, value: percentile(floor.atOnce.ms, 0.5), unit: "ms" },
        { name: "the same, own CPU", value: floor.atOnce.cpuMs, unit: "ms" },
        { name: "the same, one alone, p50", value: percentile(floor.alone.ms, 0.5), unit: "ms" },
      );
    }
    return [
      ...floors,
      { name: `${CLAIMS} claims at once, p50`, value: percentile(atOnce.ms, 0.5), unit: "ms", budget: 15 },
      { name: "the same, p99", value: percentile(atOnce.ms, 0.99), unit: "ms", budget: 60 },
      { name: "the same, own CPU of a claim", value: atOnce.cpuMs, unit: "ms", budget: 3 },
      { name: "one claim alone, p50", value: percentile(alone.ms, 0.5), unit: "ms" },
      { name: "the same, p99", value: percentile(alone.ms, 0.99), unit: "ms" },
      { name: "the same, own CPU", value: alone.cpuMs, unit: "ms" },
    ];
  } finally {
    await agent.remove();
    stop();
  }
}

type FloorMode = "empty" | "claim" | "driver" | "calls";

/** What the calls alone take, by a process that does nothing else with them: see `claims-floor-process.ts`. */
async function measureFloor(mode: FloorMode, quick: boolean) {
  const agent = new AgentProcess();
  const { claims, driver, stop } = await startClaims(agent);
  const registry = join(agent.directory, "r");
  const script = join(import.meta.dirname, "claims-floor-process.ts");
  const socket = join(agent.plugins, `${driver}.sock`);
  const floor = spawn(process.execPath, [...agentOptions, script, mode, registry, agent.kubeconfig, socket], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, ...agentEnvironment },
  });
  try {
    const kubelet = await register(registry);
    const pid = floor.pid!;
    return await atOnceAndAlone({ kubelet, pid, claims }, quick);
  } finally {
    floor.kill();
    await agent.remove();
    stop();
  }
}

/** The API server with allocated claims, their driver for this agent, and a directory of CDI files. */
export async function startClaims(agent: AgentProcess) {
  // On most hosts the CDI directory is in memory.
  const cdi = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "nkbench-cdi-"));
  const script = join(import.meta.dirname, "claim-peers-process.ts");
  const peers = spawn(process.execPath, [script, agent.plugins, agent.kubeconfig, String(CLAIMS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface(peers.stdout), "line")) as [string];
  return {
    claims: JSON.parse(line) as Claim[],
    driver: CLAIMS_DRIVER,
    cdi,
    stop() {
      peers.kill();
      rmSync(cdi, { recursive: true });
    },
  };
}

type Kubelet = Awaited<ReturnType<typeof register>>;

/** Finds the socket for the driver and registers it, as the kubelet does. */
export async function register(registry: string) {
  for (const endsAt = performance.now() + 60_000; ; await systemClock.sleep(20)) {
    if (performance.now() > endsAt) throw new Error("nobody registered with the kubelet");
    const socket = existsSync(registry) && readdirSync(registry).find((name) => name.endsWith(".sock"));
    if (!socket || socket.startsWith(".")) continue;
    const registration = callerOf(join(registry, socket));
    const info = await registration(`${RegistrationDefinition.fullName}/GetInfo`, new Uint8Array());
    const status = RegistrationStatus.encode({ pluginRegistered: true, error: "" }).finish();
    await registration(`${RegistrationDefinition.fullName}/NotifyRegistrationStatus`, status);
    // Without an endpoint, the calls go to the same socket.
    const call = callerOf(PluginInfo.decode(info).endpoint || join(registry, socket));
    return {
      /** Each call is encoded before, and its answer is read when all are there: neither is the agent's part. */
      prepare: (request: Uint8Array) => call(`${DRAPluginDefinition.fullName}/NodePrepareResources`, request),
      unprepare: (request: Uint8Array) =>
        call(`${DRAPluginDefinition.fullName}/NodeUnprepareResources`, request),
    };
  }
}

function callerOf(socket: string) {
  const channel = new UnaryChannel(socket, { maxReceiveBytes: 4 << 20 });
  return (method: string, request: Uint8Array) =>
    channel.call(method, [request], new AbortController().signal);
}

interface Rounds {
  kubelet: Kubelet;
  /** The process that prepares. */
  pid: number;
  claims: readonly Claim[];
  pauseMs?: number;
}

/** Prepares the claims at once and then one of them alone, after a warm-up. */
async function atOnceAndAlone(rounds: Pick<Rounds, "kubelet" | "pid" | "claims">, quick: boolean) {
  await inRounds(WARM_UP_ROUNDS, rounds);
  const atOnce = await inRounds(quick ? 10 : 40, rounds);
  const one = { ...rounds, claims: rounds.claims.slice(0, 1), pauseMs: 200 };
  return { atOnce, alone: await inRounds(quick ? 30 : 100, one) };
}

/**
 * Prepares all claims at once and unprepares them, in each round. Returns the duration of each call and the mean CPU
 * time of a claim, in milliseconds.
 */
export async function inRounds(
  rounds: number,
  { kubelet, pid, claims, pauseMs = PAUSE_MS }: Rounds,
): Promise<{ ms: number[]; cpuMs: number }> {
  const ms: number[] = [];
  let cpuSeconds = 0;
  const requests = claims.map((claim) => NodePrepareResourcesRequest.encode({ claims: [claim] }).finish());
  const all = NodeUnprepareResourcesRequest.encode({ claims: [...claims] }).finish();
  for (let round = 0; round < rounds; round++) {
    await systemClock.sleep(pauseMs);
    const before = cpuSecondsOf(pid);
    const prepare = async (request: Uint8Array) => {
      const calledAt = performance.now();
      const answer = await kubelet.prepare(request);
      ms.push(performance.now() - calledAt);
      return answer;
    };
    const answers = await Promise.all(requests.map(prepare));
    cpuSeconds += cpuSecondsOf(pid) - before;
    for (const [at, { uid, name }] of claims.entries()) {
      const answer = NodePrepareResourcesResponse.decode(answers[at]!).claims[uid];
      if (answer?.devices.length !== 1) throw new Error(`${name}: ${answer?.error}`);
    }
    await kubelet.unprepare(all);
  }
  return { ms, cpuMs: (cpuSeconds * 1_000) / (rounds * claims.length) };
}
