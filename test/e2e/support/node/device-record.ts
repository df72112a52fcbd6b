import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Containerd } from "../containerd.ts";
import type { ControlPlane } from "../control-plane.ts";
import type { ClusterNode } from "../node.ts";
import { RuntimeRecord } from "./runtime-record.ts";

const INTERVAL_MS = 50;

/** A container that had a device. Times are wall milliseconds of containerd's events. */
export interface DeviceUse {
  container: string;
  pid: number;
  device: string;
  claim: string;
  from: number;
  /** Undefined while it runs. */
  to: number | undefined;
}

/** A step of the driver, as its journal has it. */
export interface DriverStep {
  at: number;
  step: "prepare" | "unprepare" | "taken";
  claim: string;
  device: string;
}

/**
 * Which container had which device when: its start and exit as containerd's events have them, its device as the environment
 * of its process has it.
 */
export class DeviceRecord {
  readonly #record: RuntimeRecord;
  readonly #containerd: Containerd;
  readonly #uses = new Map<string, Pick<DeviceUse, "device" | "claim"> | undefined>();
  readonly #stopping = new AbortController();
  readonly #reading: Promise<void>;
  /** Containers and sandboxes whose environment could not be read: they had been removed by then. */
  readonly unseen: string[] = [];

  constructor(cluster: ControlPlane, node: ClusterNode) {
    this.#record = RuntimeRecord.start(cluster, node);
    this.#containerd = node.containerd;
    this.#reading = this.#read();
  }

  /** All uses so far, by device and start. */
  uses(): DeviceUse[] {
    const uses = [...this.#record.lives()].flatMap(([container, { pid, startedAt, exitedAt }]) => {
      const use = this.#uses.get(container);
      return use ? [{ container, pid, ...use, from: startedAt, to: exitedAt }] : [];
    });
    return uses.sort((a, b) => (a.device === b.device ? a.from - b.from : a.device < b.device ? -1 : 1));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#reading;
    await this.#record.stop();
  }

  async #read(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      for (const [container, { pid }] of this.#record.lives()) {
        if (this.#uses.has(container)) continue;
        this.#uses.set(container, undefined);
        // Without a device, this may be runc before it executes the container's command, or the process has exited,
        // because a frozen containerd sends events late. The environment is then read from the container's spec.
        if (this.#note(container, environmentOf(pid))) continue;
        void this.#readSpec(container).catch(() => this.unseen.push(container));
      }
      await sleep(INTERVAL_MS);
    }
  }

  async #readSpec(container: string): Promise<void> {
    const { Spec } = JSON.parse(await this.#containerd.ctr("containers", "info", container));
    this.#note(container, environmentIn(Spec.process.env));
  }

  // Returns whether it has a device.
  #note(container: string, environment: ReadonlyMap<string, string>): boolean {
    const device = environment.get("CHAOS_DEVICE");
    const claim = environment.get("CHAOS_CLAIM");
    if (!device || !claim) return false;
    this.#uses.set(container, { device, claim });
    return true;
  }
}

/** The environment of a process; empty if it does not run. */
export function environmentOf(pid: number): Map<string, string> {
  try {
    return environmentIn(readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean));
  } catch {
    return new Map();
  }
}

function environmentIn(entries: readonly string[]): Map<string, string> {
  return new Map(
    entries.map((entry) => [entry.split("=", 1)[0]!, entry.slice(entry.indexOf("=") + 1)] as const),
  );
}

/** Containers of different claims that had one device at one time, in words. */
export function overlaps(uses: readonly DeviceUse[]): string[] {
  return uses.flatMap((one, at) =>
    uses.slice(at + 1).flatMap((other) => {
      if (one.device !== other.device || one.claim === other.claim) return [];
      const ms =
        Math.min(one.to ?? Number.POSITIVE_INFINITY, other.to ?? Number.POSITIVE_INFINITY) - other.from;
      return ms > 0 ? [`${one.device}: ${named(one)} and ${named(other)} for ${ms} ms`] : [];
    }),
  );
}

/** Claims that were unprepared while a container of theirs ran, and devices that were prepared while another claim had them. */
export function brokenSteps(uses: readonly DeviceUse[], steps: readonly DriverStep[]): string[] {
  return steps.flatMap(({ at, step, claim, device }) => {
    if (step === "taken") return [`${device}: prepared for claim ${claim} before it was unprepared`];
    if (step === "prepare") return [];
    const running = uses.find((use) => use.claim === claim && (use.to === undefined || use.to > at));
    if (!running) return [];
    const left = running.to === undefined ? "runs" : `ran ${running.to - at} ms longer`;
    return [`${device}: claim ${claim} was unprepared, and ${named(running)} ${left}`];
  });
}

/** Milliseconds from the exit of a claim's container to the start of the next claim's, for each time a device changed hands. */
export function handovers(uses: readonly DeviceUse[]): number[] {
  return uses.flatMap((use, at) => {
    const before = uses[at - 1];
    if (before?.device !== use.device || before.claim === use.claim || before.to === undefined) return [];
    return [use.from - before.to];
  });
}

/** The lines of a driver's journal. */
export function stepsIn(file: string): DriverStep[] {
  if (!existsSync(file)) return [];
  // The last line may be cut by a kill.
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"));
  return lines.map((line) => JSON.parse(line) as DriverStep);
}

function named({ container, claim }: DeviceUse): string {
  return `container ${container.slice(0, 12)} of claim ${claim}`;
}
