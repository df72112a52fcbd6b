import { DriverAnswerRefused, DriverFailed } from "@nodekeeper/api/errors";
import {
  DevicePreparationDefinition,
  PrepareDevicesRequest,
  PrepareDevicesResponse,
  RestoreClaimsRequest,
  RestoreClaimsResponse,
  UnprepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { decodeMessage, UnaryChannel } from "@nodekeeper/core/grpc";
import { type Clock, codeOf, messageOf, quote, type Timer, withDeadline } from "@nodekeeper/core/lib";
import { ExchangeLog } from "../plugins/index.ts";
import type { AllocatedDevice, Allocation, ClaimPod } from "./allocation.ts";
import type { ClaimDetails } from "./claim-details.ts";
import type { ClaimReference } from "./claim-reader.ts";
import type { ClaimRecord, RecordedClaim } from "./claim-records.ts";

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
  clock: Clock;
}

const MOST_ERROR_LENGTH = 1_000;
const MOST_ANSWER_BYTES = 4 * 1024 * 1024;
// A claim has at most 32 devices, and each at most 256 of every kind of edit.
const MOST_ENTRIES = 50_000;
// Field numbers of preparation.proto: devices; their edits and CDI devices; of the edits env, deviceNodes, mounts with
// their options, and hooks with their args and env.
const repeated = { 1: { 5: { 1: {}, 2: {}, 3: { 3: {} }, 4: { 3: {}, 4: {} } }, 6: {} } };
const restoreBounds = { repeated: { 1: {} }, most: MOST_ENTRIES, what: "claims" };
const answerBounds = { repeated, most: MOST_ENTRIES, what: "devices and edits" };

/** Calls one connected driver to prepare and unprepare devices. Errors name the driver. */
export class DriverClient {
  readonly #options: DriverClientOptions;
  readonly #channel: UnaryChannel;
  /** The most recent calls. */
  readonly exchanges = new ExchangeLog();

  constructor(options: DriverClientOptions) {
    this.#options = options;
    this.#channel = new UnaryChannel(options.endpoint, { maxReceiveBytes: MOST_ANSWER_BYTES });
  }

  async prepare(
    claim: ClaimReference,
    allocation: Allocation,
    signal: AbortSignal,
  ): Promise<PrepareDevicesResponse> {
    const request = PrepareDevicesRequest.encode(
      PrepareDevicesRequest.fromPartial(messageFields(claim, allocation)),
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
    recorded: Pick<RecordedClaim, "pods" | "devices"> & { details: ClaimDetails },
    signal: AbortSignal,
  ): Promise<void> {
    const request = UnprepareDevicesRequest.encode(
      UnprepareDevicesRequest.fromPartial(messageFields(claim, recorded)),
    ).finish();
    const about = { claim: `${claim.namespace}/${claim.name}`, devices: recorded.devices.length };
    await this.#call("UnprepareDevices", request, about, signal);
  }

  /**
   * Tells the driver its recorded claims. Returns those whose preparation it has lost: none if it does not serve the call.
   * Throws `invalid` if it names a claim that was not sent.
   */
  async restore(records: readonly ClaimRecord[], signal: AbortSignal): Promise<ClaimRecord[]> {
    const { driver, service } = this.#options;
    if (service !== DevicePreparationDefinition.fullName) return [];
    const claims = records.map((record) => ({
      ...messageFields(record, record),
      isPrepared: record.state === "prepared",
    }));
    const request = RestoreClaimsRequest.encode(RestoreClaimsRequest.fromPartial({ claims })).finish();
    let answer: Uint8Array;
    try {
      answer = await this.#call("RestoreClaims", request, { claims: claims.length }, signal);
    } catch (error) {
      if (codeOf(error) === "unsupported") return [];
      throw error;
    }
    const refuse = (problem: string) =>
      new DriverAnswerRefused({ problem: `driver ${driver}: RestoreClaims: ${problem}` });
    let prepareAgain: string[];
    try {
      ({ prepareAgain } = decodeMessage(RestoreClaimsResponse, answer, restoreBounds));
    } catch (error) {
      throw refuse(messageOf(error));
    }
    const unknown = prepareAgain.find((uid) => !records.some((record) => record.uid === uid));
    if (unknown !== undefined)
      throw refuse(`it asks to prepare claim ${quote(unknown)} again, which it does not have`);
    return records.filter(({ uid }) => prepareAgain.includes(uid));
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

function messageFields(
  { namespace, name, uid }: ClaimReference,
  {
    details,
    pods,
    devices,
  }: Readonly<{ details: ClaimDetails; pods: readonly ClaimPod[]; devices: readonly AllocatedDevice[] }>,
) {
  const requests = details.requests.map((request) => ({ ...request, count: BigInt(request.count) }));
  return {
    claim: { namespace, name, uid, ...details, requests },
    pods: pods.map((pod) => ({ ...pod, namespace })),
    devices: [...devices],
  };
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
