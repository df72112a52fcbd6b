import { DevicePreparationDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { childScope, type ScopedSignal, stopped, type Writable } from "@nodekeeper/core/lib";
import { contractOf, type DeviceSync, serviceOf, type TaintReasons } from "../devices/index.ts";
import type { PluginRegistration } from "../plugins/index.ts";
import type { ClaimProblems } from "./claim-problems.ts";
import type { ClaimRestorationOptions } from "./claim-restoration.ts";
import { CallTimeouts, DriverClient } from "./driver-client.ts";
import { DriverReports, type DriverReportsOptions, type Reports } from "./driver-reports.ts";
import type { KubeletPlugin } from "./kubelet-plugin.ts";

/** A connected driver. */
export interface Connection {
  readonly generation: number;
  /** User ID that its sockets belong to. */
  readonly uid: number;
  /** The driver's socket. */
  readonly endpoint: string;
  /** Undefined if its devices need no preparation. */
  readonly client: DriverClient | undefined;
  readonly scope: ScopedSignal;
  /** Resolves after the first attempt to reconcile the driver's claims, or when the connection ends. */
  readonly reconciled: PromiseWithResolvers<void>;
  readonly isReconciled: boolean;
}

/** What is known of a driver. Only `DriverStates` changes it. */
export interface DriverState extends Readonly<Reports> {
  readonly name: string;
  /** Changes the reasons to taint the driver's devices, and publishes all of them. */
  readonly setReasons: (change: Partial<TaintReasons>) => void;
  readonly connection?: Connection;
  /** Whether the driver registers its own plugin with the kubelet, or supports none of the agent's protocols. */
  readonly isLeftAlone: boolean;
  /**
   * Whether `isLeftAlone` was detected from the driver's socket in the kubelet's directory, not from its registration.
   */
  readonly isFoundAlone: boolean;
  /** Monotonic milliseconds; the agent's start if it has not been connected. */
  readonly disconnectedAt: number;
  /** The same, wall milliseconds. */
  readonly disconnectedSince: number;
  /** Whether its registration has no preparation service: the agent answers the kubelet itself. */
  readonly needsNoPreparation: boolean;
  readonly plugin?: KubeletPlugin;
  /** Tracks whether the driver is stuck. */
  readonly timeouts: CallTimeouts;
  /** The last error. */
  readonly problem?: string;
}

type OwnState = Writable<Omit<DriverState, "connection">> & { connection?: Writable<Connection> };

/** Dependencies of drivers' states. */
export interface DriverStatesOptions extends DriverReportsOptions {
  /** Receives the reasons to taint drivers' devices. */
  devices: Pick<DeviceSync["handler"], "setTaints">;
  problems: Pick<ClaimProblems, "report" | "forgotten">;
  records: ClaimRestorationOptions["records"];
}

const READY_WAIT_MS = 5_000;
const HEALTH_WAIT_MS = 10_000;
const POLL_MS = 50;
const kubeletVersions = ["v1.DRAPlugin", "v1beta1.DRAPlugin"];

/** Drivers that are connected, were recently, or have claims. */
export class DriverStates {
  readonly #options: DriverStatesOptions;
  readonly #states = new Map<string, OwnState>();
  readonly #reports: DriverReports;
  readonly #startedAt: number;

  constructor(options: DriverStatesOptions) {
    this.#options = options;
    this.#reports = new DriverReports(options);
    this.#startedAt = options.clock.monotonic();
  }

  get(name: string): DriverState | undefined {
    return this.#states.get(name);
  }

  list(): DriverState[] {
    return [...this.#states.values()];
  }

  /** Returns the state of a driver. Creates it if needed. */
  of(name: string): DriverState {
    return this.#of(name);
  }

  #of(name: string): OwnState {
    const known = this.#states.get(name);
    if (known) return known;
    let reasons: TaintReasons = { byDevice: new Map(), isStuck: false };
    const setReasons = (change: Partial<TaintReasons>) => {
      reasons = { ...reasons, ...change };
      this.#options.devices.setTaints(name, reasons);
    };
    const state: OwnState = {
      name,
      setReasons,
      isLeftAlone: false,
      isFoundAlone: false,
      disconnectedAt: this.#startedAt,
      disconnectedSince: this.#options.clock.now(),
      needsNoPreparation: false,
      timeouts: new CallTimeouts(this.#options.clock, (isStuck) => setReasons({ isStuck })),
    };
    this.#states.set(name, state);
    return state;
  }

  /** Returns whether the driver has been connected since the agent's start. */
  wasConnected({ connection, disconnectedAt }: DriverState): boolean {
    return connection !== undefined || disconnectedAt > this.#startedAt;
  }

  /** Removes the state of a driver that is disconnected and has no claims, and whose plugin is no longer served. */
  delete(name: string): void {
    this.#states.delete(name);
    this.#options.statuses.forgotten(name);
    this.#options.allocations.forgotten(name);
    this.#options.problems.forgotten(name);
  }

  /** Connects a registered driver until the signal aborts, it disconnects, or it registers again. */
  connect({ name, versions, endpoint, generation, uid }: PluginRegistration, signal: AbortSignal): void {
    const { clock, log, problems, records, settings } = this.#options;
    const deadlineMs = () => settings().kubeletPlugin.callTimeout;
    const state = this.#of(name);
    this.disconnect(name, "registered again");
    state.isFoundAlone = false;
    state.isLeftAlone =
      !contractOf(versions) || versions.some((version) => kubeletVersions.includes(version));
    const preparation = serviceOf(versions, DevicePreparationDefinition);
    state.needsNoPreparation = !state.isLeftAlone && !preparation;
    const scope = childScope(signal);
    // The driver may be another version.
    const onRefused: ClaimRestorationOptions["onRefused"] = (refused) =>
      problems.report(name, "restoration", refused);
    onRefused([]);
    const takesClaims = preparation === DevicePreparationDefinition.fullName;
    const client =
      state.isLeftAlone || preparation === undefined
        ? undefined
        : new DriverClient({
            driver: name,
            endpoint,
            service: preparation,
            deadlineMs,
            timeouts: state.timeouts,
            restoration: takesClaims ? { records, onRefused } : undefined,
            clock,
            log,
          });
    const served = { endpoint, versions: state.isLeftAlone ? [] : versions, client };
    Object.assign(state, this.#reports.follow(state, served, scope.signal));
    state.setReasons({});
    if (state.isLeftAlone) {
      scope.release();
      return;
    }
    state.connection = {
      generation,
      uid,
      endpoint,
      client,
      scope,
      reconciled: Promise.withResolvers(),
      isReconciled: false,
    };
  }

  /** Ends a driver's connection. Taints of its devices stay until it reports again. */
  disconnect(name: string, reason: string): void {
    const state = this.#states.get(name);
    const connection = state?.connection;
    if (!connection) return;
    state.connection = undefined;
    state.disconnectedAt = this.#options.clock.monotonic();
    state.disconnectedSince = this.#options.clock.now();
    connection.reconciled.resolve();
    connection.scope.abort(stopped(reason));
    connection.scope.release();
    connection.client?.close();
    state.timeouts.answered();
    state.health?.disconnected();
    if (state.statusReport) state.statusReport.problem = undefined;
  }

  /** Records that the agent serves a plugin for a driver; undefined: it serves none. */
  serves(name: string, plugin: KubeletPlugin | undefined): void {
    this.#of(name).plugin = plugin;
  }

  /** Records whether the driver's own plugin was found in the kubelet's directory. */
  foundAlone(name: string, isAlone: boolean): void {
    const state = this.#of(name);
    state.isLeftAlone = isAlone;
    state.isFoundAlone = isAlone;
  }

  /**
   * Records an attempt to reconcile the driver's claims.
   * @param connection the connection when it began
   * @param problem why it failed
   */
  reconciled(name: string, connection: Connection | undefined, problem: string | undefined): void {
    const state = this.#of(name);
    state.problem = problem;
    if (!connection) return;
    if (state.connection === connection) state.connection.isReconciled = true;
    connection.reconciled.resolve();
  }

  /**
   * Waits until pods can be bound to a connected driver's devices: the kubelet has registered the agent as its plugin
   * (at most 5 s, because the kubelet may be down), and the driver has reported their health once (at most 10 s).
   * Returns at once if the driver is not connected. Rejects with the signal's reason.
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

  /** Ends all connections and plugins. Resolves when all tasks have ended. */
  async stop(): Promise<void> {
    for (const name of this.#states.keys()) this.disconnect(name, "the agent is stopping");
    await Promise.all([...this.#states.values()].map(({ plugin }) => plugin?.stop()));
    await this.#reports.ended();
  }
}
