import { UnaryChannel } from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  codeOf,
  type Logger,
  messageOf,
  retryPolicies,
  sleepOrAbort,
  WakeableSleep,
  withDeadline,
} from "@nodekeeper/core/lib";

export interface NoticeTarget {
  driver: string;
  /** Path of the driver's socket. */
  endpoint: string;
  /** Full name of the service as the driver serves it. */
  service: string;
  log: Logger;
}

export interface DriverNoticeOptions<State> {
  /** Name of the method in the service. Its response has no fields. */
  method: string;
  /** What is reported, for the log: "problems". */
  about: string;
  encode: (state: State) => Uint8Array;
  /** Called with each state that the driver has acknowledged. */
  onTold?: (state: State) => void;
  clock: Clock;
}

const CALL_TIMEOUT_MS = 10_000;
const MIN_INTERVAL_MS = 1_000;
// The answer is empty.
const MOST_ANSWER_BYTES = 64 * 1024;

/**
 * Reports a state to a driver by unary calls, across its connections.
 *
 * 1. The whole state is sent over each connection and after each change of the object, at most once a second.
 * 2. A driver that fails or hangs is called again with backoff. Nothing else waits for it.
 */
export class DriverNotice<State extends object> {
  readonly #options: DriverNoticeOptions<State>;
  readonly #sleep = new WakeableSleep();
  #state: State | undefined;
  /** Why the last call failed. Undefined if it succeeded or none was needed. */
  problem: string | undefined;

  constructor(options: DriverNoticeOptions<State>) {
    this.#options = options;
  }

  set(state: State): void {
    this.#state = state;
    this.#sleep.wake();
  }

  /** Calls a connected driver until the signal aborts, or it turns out not to implement the call. Never rejects. */
  async run({ driver, endpoint, service, log }: NoticeTarget, signal: AbortSignal): Promise<void> {
    const { method, about, encode, onTold, clock } = this.#options;
    const channel = new UnaryChannel(endpoint, { maxReceiveBytes: MOST_ANSWER_BYTES });
    const backoff = new Backoff(retryPolicies.driverReports);
    let told: State | undefined;
    try {
      while (!signal.aborted) {
        this.#sleep.clear();
        const state = this.#state;
        if (!state || state === told) {
          await this.#sleep.wait(clock, Number.POSITIVE_INFINITY, signal);
          continue;
        }
        const request = encode(state);
        try {
          await withDeadline(clock, { ms: CALL_TIMEOUT_MS, name: method }, signal, (scope) =>
            channel.call(`${service}/${method}`, [request], scope),
          );
          told = state;
          this.problem = undefined;
          onTold?.(state);
          backoff.reset();
          await sleepOrAbort(clock, MIN_INTERVAL_MS, signal);
        } catch (error) {
          if (signal.aborted) return;
          this.problem = messageOf(error);
          if (codeOf(error) === "unsupported") return;
          const retryInMs = Math.round(backoff.next());
          log.info({ driver, err: error, retryInMs }, `failed to report ${about} to a driver, retrying`);
          await sleepOrAbort(clock, retryInMs, signal);
        }
      }
    } catch {
      // The signal has aborted.
    } finally {
      if (signal.aborted) this.problem = undefined;
      channel.close();
    }
  }
}
