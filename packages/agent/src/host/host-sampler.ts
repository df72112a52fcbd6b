import type { Clock } from "@nodekeeper/core/lib";
import type { HostFiles } from "./host-files.ts";
import { type MemoryState, memoryState, type PageSize, watermarkScaleFactorOf } from "./memory.ts";
import { machinePressure, type Pressure, type PressureResource } from "./pressure.ts";
import { Probe } from "./probe.ts";
import { type PidState, pidLimitOf, pidState } from "./processes.ts";
import { type NodeMemory, nodeMemoryOf, parseZoneInfo, ZONE_INFO, ZONE_INFO_CAP } from "./zone-info.ts";

/**
 * State of the host between rounds. Each source is read synchronously on first use; the kernel generates all of them in
 * memory. Values that cannot be read are undefined; the readings of rounds report the reason.
 */
export interface HostSample {
  /** Monotonic milliseconds. */
  readonly at: number;
  memory(): MemoryState | undefined;
  /** Memory by NUMA node. Undefined until a reading has determined the page size. */
  nodeMemory(): NodeMemory[] | undefined;
  /** Pressure of the whole host. */
  pressure(resource: PressureResource): Pressure | undefined;
  pids(): PidState | undefined;
}

// Kernel settings rarely change and are read again after this number of samples.
const SETTINGS_SAMPLES = 64;

/** Takes samples. Caches kernel settings, so that a sample reads only two or three small files. */
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
