import { DriverAnswerRefused, DriverFailed } from "@nodekeeper/api/errors";
import {
  PrepareDevicesRequest,
  PrepareDevicesResponse,
  UnprepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { decodeMessage, UnaryChannel } from "@nodekeeper/core/grpc";
import {
  type Clock,
  codeOf,
  type Logger,
  messageOf,
  silentLogger,
  type Timer,
  withDeadline,
} from "@nodekeeper/core/lib";
import { ExchangeLog } from "../plugins/index.ts";
import type { Allocation } from "./allocation.ts";
import { claimMessage } from "./claim-messages.ts";
import type { ClaimReference } from "./claim-reader.ts";
import type { RecordedClaim } from "./claim-records.ts";
import { ClaimRestoration, type ClaimRestorationOptions } from "./claim-restoration.ts";

export interface DriverClientOptions {
  driver: string;
  /** Path of the driver's socket. */
  endpoint: string;
  /** Full name of the service `DevicePreparation` as the driver serves it. */
  service: string;
  /** Milliseconds for each call. */
  deadlineMs: () => number;
  /** Is notified of calls that were answered, also with an error, and of calls that reached `deadlineMs`. */
  timeouts?: Pick<CallTimeouts, "answered" | "timedOut">;
  /** The driver's claims, if it serves v1alpha2: they are sent to it before any other call. */
  restoration?: Pick<ClaimRestorationOptions, "records" | "onRefused"> | undefined;
  log?: Logger;
  clock: Clock;
}

const MOST_ERROR_LENGTH = 1_000;
const MOST_ANSWER_BYTES = 4 * 1024 * 1024;
// A claim has at most 32 devices, and each at most 256 of every kind of edit.
const MOST_ENTRIES = 50_000;
// Field numbers in preparation.proto. Edits: env, deviceNodes, mounts with their options, hooks with their args and
// env, additionalGids, schemata of intelRdt, and netDevices. Response: devices with their edits, CDI devices and
// annotations, and the claim's edits.
const edits = { 1: {}, 2: {}, 3: { 3: {} }, 4: { 3: {}, 4: {} }, 5: {}, 6: { 4: {} }, 7: {} };
const repeated = { 1: { 5: edits, 6: {}, 7: {} }, 2: edits };
const answerBounds = { repeated, most: MOST_ENTRIES, what: "devices and edits" };

/** Calls one connected driver to prepare and unprepare devices. Errors name the driver. */
export class DriverClient {
  readonly #options: DriverClientOptions;
  readonly #channel: UnaryChannel;
  /** The most recent calls. */
  readonly exchanges = new ExchangeLog();
  readonly #restoration: ClaimRestoration | undefined;

  constructor(options: DriverClientOptions) {
    this.#options = options;
    const { driver, restoration, log = silentLogger } = options;
    const call = (request: Uint8Array, about: object) =>
      this.#call("RestoreClaims", request, about, new AbortController().signal);
    this.#restoration = restoration && new ClaimRestoration({ driver, ...restoration, call, log });
    this.#channel = new UnaryChannel(options.endpoint, { maxReceiveBytes: MOST_ANSWER_BYTES });
  }

  /** Whether the driver receives the service accounts of pods. */
  get takesAccounts(): boolean {
    return this.#restoration !== undefined;
  }

  /** Sends the driver its recorded claims if due and if it serves v1alpha2: see `ClaimRestoration.retry`. */
  async restore(signal: AbortSignal): Promise<void> {
    await this.#restoration?.retry(signal);
  }

  /** Waits until the driver has answered RestoreClaims, as `ClaimRestoration.done` does. */
  async restored(signal: AbortSignal): Promise<void> {
    await this.#restoration?.done(signal);
  }

  async prepare(
    claim: ClaimReference,
    allocation: Allocation,
    signal: AbortSignal,
  ): Promise<PrepareDevicesResponse> {
    await this.#restoration?.done(signal);
    const request = PrepareDevicesRequest.encode(
      PrepareDevicesRequest.fromPartial(claimMessage(claim, allocation)),
    ).finish();
    const about = { claim: `${claim.namespace}/${claim.name}`, devices: allocation.devices.length };
    const answer = await this.#call("PrepareDevices", request, about, signal);
    try {
      return decodeMessage(PrepareDevicesResponse, answer, answerBounds);
    } catch (error) {
      const { driver } = this.#options;
      throw new DriverAnswerRefused({ problem: `driver ${driver}: ${messageOf(error)}` });
    }
  }

  async unprepare(
    claim: ClaimReference,
    recorded: Pick<RecordedClaim, "pods" | "devices" | "details">,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#restoration?.done(signal);
    const request = UnprepareDevicesRequest.encode(
      UnprepareDevicesRequest.fromPartial(claimMessage(claim, recorded)),
    ).finish();
    const about = { claim: `${claim.namespace}/${claim.name}`, devices: recorded.devices.length };
    await this.#call("UnprepareDevices", request, about, signal);
  }

  /** Closes the connection. Calls in progress fail with `unavailable`. */
  close(): void {
    this.#channel.close();
  }

  async #call(method: string, request: Uint8Array, about: object, parent: AbortSignal): Promise<Uint8Array> {
    const { driver, service, deadlineMs, timeouts, clock } = this.#options;
    const path = `${service}/${method}`;
    const deadline = deadlineMs();
    const startedAt = clock.monotonic();
    const note = (result: { answer: object } | { error: string }) => {
      const ms = clock.monotonic() - startedAt;
      this.exchanges.note({ call: method, at: clock.now(), ms, request: about, ...result });
    };
    try {
      const answer = await withDeadline(clock, { ms: deadline, name: method }, parent, (signal) =>
        this.#channel.call(path, [request], signal),
      );
      // The answer is not logged: its edits may be confidential, such as variables with a token.
      note({ answer: { bytes: answer.length } });
      timeouts?.answered();
      return answer;
    } catch (error) {
      parent.throwIfAborted();
      const code = codeOf(error);
      // A driver may return DEADLINE_EXCEEDED itself, for example from a call that it made.
      if (code === "deadline" && clock.monotonic() - startedAt >= deadline) timeouts?.timedOut();
      else if (code !== "unavailable") timeouts?.answered();
      note({ error: messageOf(error).slice(0, MOST_ERROR_LENGTH) });
      throw new DriverFailed({ driver, problem: messageOf(error) }, { cause: error, code });
    }
  }
}

// After this time, pods may be scheduled to the driver's devices again.
const LASTS_MS = 60_000;

/**
 * Tracks whether a driver is stuck: a call reached its deadline, so that the next would most likely time out too. It is
 * stuck until it answers a call, even with an error, and for at most a minute.
 */
export class CallTimeouts {
  readonly #clock: Clock;
  readonly #onChange: (isStuck: boolean) => void;
  #timer: Timer | undefined;

  /** @param onChange called when `isStuck` has changed */
  constructor(clock: Clock, onChange: (isStuck: boolean) => void) {
    this.#clock = clock;
    this.#onChange = onChange;
  }

  get isStuck(): boolean {
    return this.#timer !== undefined;
  }

  /** Records that a call reached its deadline. */
  timedOut(): void {
    const wasStuck = this.isStuck;
    this.#timer?.cancel();
    this.#timer = this.#clock.after(LASTS_MS, () => this.answered());
    if (!wasStuck) this.#onChange(this.isStuck);
  }

  /** Records that the driver answered a call, or that another process serves its socket. */
  answered(): void {
    if (!this.#timer) return;
    this.#timer.cancel();
    this.#timer = undefined;
    this.#onChange(this.isStuck);
  }
}
