import {
  DevicePreparationDefinition,
  PrepareDevicesRequest,
  PrepareDevicesResponse,
  UnprepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import { checkEntries, type RepeatedFields, UnaryChannel } from "@nodekeeper/core/grpc";
import { type Clock, codeOf, messageOf, NodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import { ExchangeLog } from "../plugins/index.ts";
import type { Allocation, DeviceIdentity } from "./allocation.ts";
import type { ClaimReference } from "./claim-reader.ts";

export interface DriverClientOptions {
  driver: string;
  /** Of the driver's socket. */
  endpoint: string;
  /** Milliseconds for each call. */
  deadlineMs: () => number;
  clock: Clock;
}

const MOST_ERROR_LENGTH = 1_000;
const MOST_ANSWER_BYTES = 4 * 1024 * 1024;
// A claim has at most 32 devices, and each at most 256 of every kind of edit.
const MOST_ENTRIES = 50_000;
// Field numbers of preparation.proto: devices; their edits and CDI devices; of the edits env, deviceNodes, mounts with
// their options, and hooks with their args and env.
const repeatedInAnswer: RepeatedFields = {
  1: { 5: { 1: {}, 2: {}, 3: { 3: {} }, 4: { 3: {}, 4: {} } }, 6: {} },
};

/** Asks one connected driver to prepare devices and to undo it. Errors name the driver. */
export class DriverClient {
  readonly #options: DriverClientOptions;
  readonly #channel: UnaryChannel;
  /** Its last calls. */
  readonly exchanges = new ExchangeLog();

  constructor(options: DriverClientOptions) {
    this.#options = options;
    this.#channel = new UnaryChannel(options.endpoint, { maxReceiveBytes: MOST_ANSWER_BYTES });
  }

  async prepare(
    { namespace, name, uid }: ClaimReference,
    { pods, devices }: Allocation,
    signal: AbortSignal,
  ): Promise<PrepareDevicesResponse> {
    const request = PrepareDevicesRequest.encode({
      claim: { namespace, name, uid },
      pods,
      devices,
    }).finish();
    const about = { claim: `${namespace}/${name}`, devices: devices.length };
    const answer = await this.#call("PrepareDevices", { request, about }, signal);
    try {
      checkEntries(answer, repeatedInAnswer, MOST_ENTRIES, "devices and edits");
      return PrepareDevicesResponse.decode(answer);
    } catch (error) {
      const { driver } = this.#options;
      throw new NodekeeperError(
        "invalid",
        `driver ${driver}: its answer can't be decoded: ${messageOf(error)}`,
        { id: "NK1507" },
      );
    }
  }

  async unprepare(
    { namespace, name, uid }: ClaimReference,
    devices: readonly DeviceIdentity[],
    signal: AbortSignal,
  ): Promise<void> {
    const request = UnprepareDevicesRequest.encode({
      claim: { namespace, name, uid },
      devices: devices.map((device) => ({
        ...device,
        consumedCapacity: {},
        adminAccess: false,
        configuration: [],
      })),
    }).finish();
    const about = { claim: `${namespace}/${name}`, devices: devices.length };
    await this.#call("UnprepareDevices", { request, about }, signal);
  }

  /** Calls under way fail with `unavailable`. */
  close(): void {
    this.#channel.close();
  }

  async #call(
    method: string,
    { request, about }: { request: Uint8Array; about: object },
    parent: AbortSignal,
  ): Promise<Uint8Array> {
    const { driver, deadlineMs, clock } = this.#options;
    const path = `${DevicePreparationDefinition.fullName}/${method}`;
    const startedAt = clock.monotonic();
    const note = (result: { answer: object } | { error: string }) => {
      const ms = clock.monotonic() - startedAt;
      this.exchanges.note({ call: method, at: clock.now(), ms, request: about, ...result });
    };
    try {
      const answer = await withDeadline(clock, deadlineMs(), method, parent, (signal) =>
        this.#channel.call(path, [request], signal),
      );
      // What it edits in containers may be confidential, such as variables with a token.
      note({ answer: { bytes: answer.length } });
      return answer;
    } catch (error) {
      parent.throwIfAborted();
      note({ error: messageOf(error).slice(0, MOST_ERROR_LENGTH) });
      throw new NodekeeperError(codeOf(error), `driver ${driver}: ${messageOf(error)}`, {
        id: "NK1508",
        cause: error,
      });
    }
  }
}
