import type { Clock } from "@nodekeeper/core/lib";
import type { Host } from "../../host/index.ts";
import type { TopologyManager } from "./topology-policy.ts";

// Searching all processes takes milliseconds, and the kubelet is rarely restarted. Milliseconds.
const SEARCH_INTERVAL_MS = 60_000;

/** Kubelet flags that determine the topology manager settings. */
export interface TopologyFlags extends Partial<TopologyManager> {
  /** Directory of files that override the configuration file. */
  dropIns?: string;
}

const flags: Readonly<Record<string, keyof TopologyFlags>> = {
  "--config-dir": "dropIns",
  "--topology-manager-policy": "policy",
  "--topology-manager-scope": "scope",
};

/** Reads the running kubelet's command line for its drop-in directory and for flags that override its files. */
export class KubeletFlags {
  readonly #host: Host;
  readonly #clock: Clock;
  #pid: number | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;
  #known: TopologyFlags = {};

  constructor(host: Host, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
  }

  /**
   * Returns the kubelet's flags. Empty if there are none or no kubelet process is visible. After the kubelet exits, its
   * last flags are returned until the next search: a restart rarely changes them.
   */
  async read(signal: AbortSignal): Promise<TopologyFlags> {
    const now = this.#clock.monotonic();
    const wasRunning = this.#pid !== undefined;
    if (!wasRunning && now < this.#notBefore) return this.#known;
    this.#notBefore = now + SEARCH_INTERVAL_MS;
    const reading = await this.#host.findProcess("kubelet", this.#pid, signal);
    this.#pid = reading.state === "read" ? reading.value.pid : undefined;
    if (reading.state === "read") this.#known = topologyFlags(reading.value.arguments);
    else if (!wasRunning) this.#known = {};
    return this.#known;
  }
}

/** Parses the flags of a command line, `--name=value` or `--name value`. The last one takes precedence. */
export function topologyFlags(line: readonly string[]): TopologyFlags {
  const found: TopologyFlags = {};
  for (const [at, argument] of line.entries()) {
    const [name = "", value = line[at + 1]] = argument.split(/=(.*)/s);
    const setting = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (setting && value) found[setting] = value;
  }
  return found;
}
