import type { Clock } from "@nodekeeper/core/lib";
import type { HostFiles } from "./host-files.ts";
import { type MemoryState, memoryState, watermarkScaleFactorOf } from "./memory.ts";
import type { PageSize } from "./page-size.ts";
import { type PidState, pidLimitOf, pidState } from "./pids.ts";
import { machinePressure, type Pressure, type PressureResource } from "./pressure.ts";
import { Probe } from "./probe.ts";
import { type NodeMemory, nodeMemoryOf, parseZoneInfo, ZONE_INFO, ZONE_INFO_CAP } from "./zone-info.ts";

/**
 * A quick look at the machine between rounds. Each source is read when it is first asked for, on this thread: all are
 * files that the kernel makes up in memory. What can't be read is undefined; rounds report why.
 */
export interface HostSample {
  /** Monotonic milliseconds. */
  readonly at: number;
  memory(): MemoryState | undefined;
  /** Memory by NUMA node; undefined also before a reading has found the size of a page. */
  nodeMemory(): NodeMemory[] | undefined;
  /** Pressure on the whole machine. */
  pressure(resource: PressureResource): Pressure | undefined;
  pids(): PidState | undefined;
}

// What an administrator sets, and hardly ever changes, is read again after so many samples.
const SETTINGS_SAMPLES = 64;

/** Takes samples. The kernel's settings are kept for a few seconds, so that a sample is two or three small files. */
export class HostSampler {
  readonly #files: HostFiles;
  readonly #pageSize: PageSize;
  readonly #clock: Clock;
  readonly #signal = new AbortController().signal;
  readonly #settings = new Map<string, number | undefined>();
  #samples = 0;

  constructor(files: HostFiles, pageSize: PageSize, clock: Clock) {
    this.#files = files;
    this.#pageSize = pageSize;
    this.#clock = clock;
  }

  sample(): HostSample {
    if (this.#samples++ % SETTINGS_SAMPLES === 0) this.#settings.clear();
    const probe = new Probe(this.#files, this.#signal);
    const values = new Map<string, unknown>();
    const once = <T>(name: string, read: () => T): T => {
      if (!values.has(name)) values.set(name, read());
      return values.get(name) as T;
    };
    return {
      at: this.#clock.monotonic(),
      memory: () =>
        once("memory", () => memoryState(probe, this.#setting("watermark", probe, watermarkScaleFactorOf))),
      nodeMemory: () => once("nodeMemory", () => this.#nodeMemory(probe)),
      pressure: (resource) => once(`${resource} pressure`, () => machinePressure(probe, resource)),
      pids: () => once("pids", () => pidState(probe, this.#setting("pids", probe, pidLimitOf))),
    };
  }

  #nodeMemory(probe: Probe): NodeMemory[] | undefined {
    const pageSize = this.#pageSize.known;
    if (pageSize === undefined) return undefined;
    const text = probe.longKernelText(ZONE_INFO, ZONE_INFO_CAP);
    return text === undefined ? undefined : nodeMemoryOf(parseZoneInfo(text), pageSize);
  }

  #setting(name: string, probe: Probe, read: (probe: Probe) => number | undefined): number | undefined {
    if (!this.#settings.has(name)) this.#settings.set(name, read(probe));
    return this.#settings.get(name);
  }
}
