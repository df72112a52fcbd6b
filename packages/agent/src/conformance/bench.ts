import { counted } from "@nodekeeper/api/wording";
import {
  DeviceDriverDefinition,
  ListAndWatchDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  DevicePreparationDefinition,
  type PrepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { PluginInfo } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";
import { type CheckedPools, PoolReader, readMessage, serviceOf } from "../devices/index.ts";
import { RegistrationClient } from "../plugins/index.ts";
import { allocatable, allocated, type StreamedDevice } from "./claims.ts";
import { RuleBroken, Skipped } from "./finding.ts";
import { PreparationCalls } from "./preparation-calls.ts";
import { Watch } from "./watch.ts";

/** How a driver is checked. */
export interface ConformanceOptions {
  /** The driver's registration socket, or the directory that it serves it in. */
  place: string;
  /** The command that runs the driver. Undefined: it runs already. */
  command: string | undefined;
  /** The command that restarts a driver that runs already. */
  restartCommand: string | undefined;
  /** Whether a driver that was not started by `command` is known to serve no pods. */
  idle: boolean;
  /** Whether to prepare and unprepare devices. */
  prepares: boolean;
  /** Opaque parameters of the claims, a JSON object. */
  configuration: string | undefined;
  /** Devices that may be prepared, by name or "<pool>/<device>". Empty: all. */
  only: readonly string[];
  /** Number of claims that are prepared to measure the time. */
  calls: number;
  nodeName: string;
  /** Called at the end with the devices of claims that could not be unprepared, and the reason. */
  onLeftPrepared: (devices: readonly string[], reason: string) => void;
  clock: Clock;
}

const timeouts = { dialMs: 10_000, infoMs: 10_000, noticeMs: 10_000 };

/** The driver under test, and what the checks have learned of it. */
export class Bench implements AsyncDisposable {
  readonly options: ConformanceOptions;
  readonly signal: AbortSignal;
  /** The registration socket. */
  socket: string;
  info: PluginInfo | undefined;
  /** Supported versions that turned out not to be served. */
  readonly unserved = new Set<string>();
  /** Pools of the first message. */
  pools: CheckedPools | undefined;
  devices: Watch<CheckedPools> | undefined;
  /** Whether a claim was prepared and unprepared. */
  canPrepare = false;
  #calls: PreparationCalls | undefined;

  constructor(options: ConformanceOptions, socket: string, signal: AbortSignal) {
    this.options = options;
    this.socket = socket;
    this.signal = signal;
  }

  get clock(): Clock {
    return this.options.clock;
  }

  /** What the driver registered with. */
  get known(): PluginInfo {
    if (!this.info) throw new Skipped("GetInfo failed");
    return this.info;
  }

  get endpoint(): string {
    return this.info?.endpoint || this.socket;
  }

  /** Calls GetInfo as the agent does. */
  async getInfo(): Promise<PluginInfo> {
    using client = new RegistrationClient(this.socket, timeouts, this.clock);
    return await client.getInfo(this.signal);
  }

  /** Tells the driver that it is registered. */
  async notify(): Promise<void> {
    using client = new RegistrationClient(this.socket, timeouts, this.clock);
    await client.notify(undefined, this.signal);
  }

  /** Returns the full name of a service. Throws `Skipped` if the driver does not serve it. */
  service(definition: { name: string }): string {
    const versions = this.known.supportedVersions.filter((version) => !this.unserved.has(version));
    const service = serviceOf(versions, definition);
    if (service === undefined) throw new Skipped(`the driver does not serve ${definition.name}`);
    return service;
  }

  /** Opens the stream of devices on a connection of its own. */
  watchDevices(contract: string): Watch<CheckedPools> {
    const { nodeName } = this.options;
    const reader = new PoolReader({ driver: this.known.name, nodeName });
    return this.watch({
      method: `${contract}.${DeviceDriverDefinition.name}/ListAndWatchDevices`,
      request: ListAndWatchDevicesRequest.encode({ nodeName }).finish(),
      read: (bytes) => reader.read(readMessage(bytes)),
    });
  }

  /** Opens a stream on a connection of its own. */
  watch<T>(stream: { method: string; request: Uint8Array; read: (bytes: Uint8Array) => T }): Watch<T> {
    return new Watch({ ...stream, endpoint: this.endpoint, clock: this.clock }, this.signal);
  }

  /** Whether the driver serves no pods, so that no other client sends it claims or problems. */
  get isOwn(): boolean {
    return this.options.command !== undefined || this.options.idle;
  }

  /** Throws `Skipped` for a driver that may serve pods: it would act on claims or problems that are not its own. */
  checkIsOwn(): void {
    if (!this.isOwn)
      throw new Skipped("needs --command or --idle: the driver may have other claims and problems");
  }

  /** Calls of DevicePreparation. Throws `Skipped` if the driver does not serve it, or must not be called. */
  get preparation(): PreparationCalls {
    if (!this.options.prepares) throw new Skipped("--no-prepare");
    this.#calls ??= new PreparationCalls({
      endpoint: this.endpoint,
      service: this.service(DevicePreparationDefinition),
      clock: this.clock,
      signal: this.signal,
      restoresFirst: this.isOwn,
      onLeftPrepared: this.options.onLeftPrepared,
    });
    return this.#calls;
  }

  /** Makes the next call of DevicePreparation connect again. */
  reconnect(): void {
    this.#calls?.reconnect(this.endpoint);
  }

  /**
   * Returns the streamed devices that claims may use. Throws `Skipped` if there are fewer than `atLeast`, and
   * `RuleBroken` if none of the devices in `only` is streamed.
   */
  streamed(atLeast = 1): StreamedDevice[] {
    const { only } = this.options;
    const devices = (this.pools ? allocatable(this.pools) : []).filter(
      ({ pool, device: { name } }) =>
        only.length === 0 || only.includes(name) || only.includes(`${pool}/${name}`),
    );
    if (only.length > 0 && devices.length === 0)
      throw new RuleBroken(`the driver does not stream ${only.join(", ")}`);
    if (devices.length < atLeast)
      throw new Skipped(
        `needs ${counted(atLeast, "device")} that can be allocated together; there are ${devices.length}`,
      );
    return devices;
  }

  /** Returns the allocation of a streamed device for a claim. */
  allocated(device: StreamedDevice): PrepareDevicesRequest["devices"][number] {
    return allocated(device, this.options.configuration) as PrepareDevicesRequest["devices"][number];
  }

  /** Unprepares all claims that may be prepared. */
  async release(): Promise<void> {
    await this.#calls?.release();
  }

  /** Throws if the driver does not answer any more. */
  async checkServes(): Promise<void> {
    try {
      await this.getInfo();
    } catch (error) {
      throw new NodekeeperError("unavailable", "the driver no longer serves", { cause: error });
    }
  }

  /** Unprepares all claims, and ends the streams. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.devices?.[Symbol.dispose]();
    await this.#calls?.[Symbol.asyncDispose]();
  }
}
