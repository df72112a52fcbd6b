import { setTimeout as sleep } from "node:timers/promises";
import type { AgentProcess } from "../agent-process.ts";
import type { Child } from "../child.ts";
import type { ClusterNode } from "../node.ts";
import type { ChaosDrivers } from "./chaos-drivers.ts";
import { type DeviceRecord, type DeviceUse, environmentOf } from "./device-record.ts";

export interface ChaosWorld {
  node: ClusterNode;
  agent: AgentProcess;
  drivers: ChaosDrivers;
  record: DeviceRecord;
  /** A number from 0 to below 1. */
  random: () => number;
}

type Fault = (world: ChaosWorld) => Promise<unknown>;

/** Faults of the node's own programs. One of them at a time, beside one of `deviceFaults`. */
export const nodeFaults: Readonly<Record<string, Fault>> = {
  "kubelet outage": (world) => outage(world.node.kubelet, world, 5_000),
  "containerd frozen": (world) => frozen(world.node.containerd.process, world, 5_000),
  "agent killed": (world) => outage(world.agent.child, world, 3_000),
  "agent frozen": (world) => frozen(world.agent.child, world, 5_000),
};

/** Faults of the driver and of containers that have its devices. */
export const deviceFaults: Readonly<Record<string, Fault>> = {
  "driver killed": ({ drivers, ...world }) => outage(drivers.current, world, 4_000),
  "driver frozen": ({ drivers, ...world }) => frozen(drivers.current, world, 6_000),
  surge,
  "late calls": lateCalls,
  "container frozen": frozenContainer,
  "container paused": pausedContainer,
};

/** Causes faults, one after another, and counts them by name; nothing stays stopped or late. */
export async function causeFaults(
  faults: Readonly<Record<string, Fault>>,
  world: ChaosWorld,
  isOver: () => boolean,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const names = Object.keys(faults);
  while (!isOver()) {
    await sleep(2_000 + world.random() * 8_000);
    const name = names[Math.floor(world.random() * names.length)]!;
    await faults[name]!(world);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

async function outage(child: Child, { random }: Pick<ChaosWorld, "random">, mostMs: number): Promise<void> {
  await child.kill();
  await sleep(random() * mostMs);
  child.start();
}

async function frozen({ pid }: Child, { random }: Pick<ChaosWorld, "random">, mostMs: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await sleep(500 + random() * mostMs);
  process.kill(pid, "SIGCONT");
}

// As a rolling update with maxSurge: the second instance is there before the first one is asked to stop.
async function surge({ drivers, random }: ChaosWorld): Promise<void> {
  const before = drivers.surge();
  await sleep(random() * 3_000);
  if (random() < 0.3) await before.kill();
  else await before.stop();
}

async function lateCalls({ drivers, random }: ChaosWorld): Promise<void> {
  drivers.setLate(Math.round(500 + random() * 7_500));
  await sleep(2_000 + random() * 4_000);
  drivers.setLate(0);
}

async function frozenContainer(world: ChaosWorld): Promise<void> {
  const use = runningUse(world);
  if (!use) return;
  // The PID may be another process's by now.
  const signal = (name: NodeJS.Signals) => {
    if (environmentOf(use.pid).get("CHAOS_CLAIM") === use.claim) process.kill(use.pid, name);
  };
  signal("SIGSTOP");
  await sleep(500 + world.random() * 5_000);
  signal("SIGCONT");
}

// By its cgroup's freezer: not even SIGKILL ends it meanwhile.
async function pausedContainer(world: ChaosWorld): Promise<void> {
  const use = runningUse(world);
  if (!use) return;
  const { containerd } = world.node;
  // It may have ended by now.
  const isPaused = await containerd.ctr("task", "pause", use.container).then(
    () => true,
    () => false,
  );
  if (!isPaused) return;
  await sleep(500 + world.random() * 4_000);
  await containerd.ctr("task", "resume", use.container).catch(() => {});
}

function runningUse({ record, random }: ChaosWorld): DeviceUse | undefined {
  const running = record.uses().filter(({ to }) => to === undefined);
  return running[Math.floor(random() * running.length)];
}
