import {
  DeviceHealthReportDefinition,
  DevicePreparationDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import { type Clock, childScope, type Logger, type ScopedSignal, stopped } from "@nodekeeper/core/lib";
import type { AddedTaints } from "../devices/index.ts";
import type { PluginRegistration } from "../plugins/index.ts";
import { DriverClient } from "./driver-client.ts";
import { DriverHealth } from "./driver-health.ts";
import type { KubeletPlugin } from "./kubelet-plugin.ts";

/** A driver that is connected now, with what is done for it. */
export interface Connection {
  generation: number;
  /** Undefined where its devices need no preparation. */
  client: DriverClient | undefined;
  scope: ScopedSignal;
  /** What was left from before was done once, or tried. */
  reconciled: PromiseWithResolvers<void>;
  isReconciled: boolean;
}

export interface DriverState {
  readonly name: string;
  connection: Connection | undefined;
  /** Lasts over connections; undefined where the driver reports no health. */
  health: DriverHealth | undefined;
  /** It is the kubelet's plugin by itself, or has none of the agent's protocols. */
  isLeftAlone: boolean;
  /** Monotonic milliseconds; since the agent's start where it has not been connected. */
  disconnectedAt: number;
  /** Its registration has no preparation: the agent answers the kubelet without it. */
  needsNoPreparation: boolean;
  plugin: KubeletPlugin | undefined;
  /** The last error. */
  problem: string | undefined;
}

export interface DriverStatesOptions {
  /** The pool that is called after the node has no name in reports of health. */
  nodeName: string;
  /** Milliseconds for each call of a driver. */
  callTimeoutMs: () => number;
  /** Taints of a driver's devices may have changed. */
  onTaints: (driver: string) => void;
  clock: Clock;
  log: Logger;
}

const READY_WAIT_MS = 5_000;
const HEALTH_WAIT_MS = 10_000;
const POLL_MS = 50;
const streamVersion = "nodekeeper.devices.v1alpha1";
const kubeletVersions = ["v1.DRAPlugin", "v1beta1.DRAPlugin"];

/** The drivers that are connected, were until recently, or have claims. */
export class DriverStates {
  readonly #options: DriverStatesOptions;
  readonly #states = new Map<string, DriverState>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #startedAt: number;

  constructor(options: DriverStatesOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
  }

  get(name: string): DriverState | undefined {
    return this.#states.get(name);
  }

  list(): DriverState[] {
    return [...this.#states.values()];
  }

  /** The state of a driver; made where there is none. */
  of(name: string): DriverState {
    const known = this.#states.get(name);
    if (known) return known;
    const state: DriverState = {
      name,
      connection: undefined,
      health: undefined,
      isLeftAlone: false,
      disconnectedAt: this.#startedAt,
      needsNoPreparation: false,
      plugin: undefined,
      problem: undefined,
    };
    this.#states.set(name, state);
    return state;
  }

  delete(name: string): void {
    this.#states.delete(name);
  }

  /** Takes a registration; its connection lasts until the signal aborts, it disconnects, or registers again. */
  connect({ name, versions, endpoint, generation }: PluginRegistration, signal: AbortSignal): void {
    const { clock, callTimeoutMs } = this.#options;
    const state = this.of(name);
    this.disconnect(state, "registered again");
    state.isLeftAlone =
      !versions.includes(streamVersion) || versions.some((version) => kubeletVersions.includes(version));
    const hasHealth = !state.isLeftAlone && versions.includes(DeviceHealthReportDefinition.fullName);
    const isPreparing = versions.includes(DevicePreparationDefinition.fullName);
    state.needsNoPreparation = !state.isLeftAlone && !isPreparing;
    const scope = childScope(signal);
    this.#followHealth(state, hasHealth, endpoint, scope.signal);
    if (state.isLeftAlone) {
      scope.release();
      return;
    }
    state.connection = {
      generation,
      client: isPreparing
        ? new DriverClient({ driver: name, endpoint, deadlineMs: callTimeoutMs, clock })
        : undefined,
      scope,
      reconciled: Promise.withResolvers(),
      isReconciled: false,
    };
  }

  /** Ends a driver's connection. Taints of its devices stay: what it reported last holds until it reports again. */
  disconnect(state: DriverState, reason: string): void {
    const { connection } = state;
    if (!connection) return;
    state.connection = undefined;
    state.disconnectedAt = this.#options.clock.monotonic();
    connection.reconciled.resolve();
    connection.scope.abort(stopped(reason));
    connection.scope.release();
    connection.client?.close();
    state.health?.disconnected();
  }

  /**
   * Waits until pods can be bound to a connected driver's devices: the kubelet has registered the agent as its plugin (5 s
   * at most, for the kubelet may be down), and the driver has reported their health once (10 s at most). Not at all where
   * the driver is left alone. Rejects with the signal's reason.
   */
  async untilReady(name: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    const isWaiting = () => {
      const state = this.#states.get(name);
      if (!state?.connection) return false;
      const elapsedMs = clock.monotonic() - startedAt;
      const isRegistered = state.plugin?.registration.state === "registered";
      const isHealthKnown = !state.health || state.health.isKnown;
      return (!isRegistered && elapsedMs < READY_WAIT_MS) || (!isHealthKnown && elapsedMs < HEALTH_WAIT_MS);
    };
    while (isWaiting()) await clock.sleep(POLL_MS, signal);
  }

  /** Taints of a driver's devices that are not healthy; the same object until one changes. */
  taints(name: string): Pick<AddedTaints, "byDevice"> | undefined {
    const byDevice = this.#states.get(name)?.health?.taints;
    return byDevice && { byDevice };
  }

  /** Ends every connection; resolves when nothing runs any more. */
  async stop(): Promise<void> {
    for (const state of this.#states.values()) this.disconnect(state, "the agent is stopping");
    await Promise.all([...this.#states.values()].map(({ plugin }) => plugin?.stop()));
    await Promise.all(this.#tasks);
  }

  #followHealth(state: DriverState, hasHealth: boolean, endpoint: string, signal: AbortSignal): void {
    const { nodeName, onTaints, clock, log } = this.#options;
    const driver = state.name;
    if (!hasHealth) {
      if (!state.health) return;
      state.health.end();
      state.health = undefined;
      onTaints(driver);
      return;
    }
    state.health ??= new DriverHealth({ driver, nodeName, onChange: () => onTaints(driver), clock, log });
    const task = state.health.follow(endpoint, signal).finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }
}
