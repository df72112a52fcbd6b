import {
  Backoff,
  type Clock,
  childScope,
  codeOf,
  type Logger,
  retryPolicies,
  stopped,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { broadcastsEvents, type Runtime, type RuntimeHint, type RuntimeVersion } from "../runtime/index.ts";

/**
 * `starting`: the stream is requested; `healthy`: it is open; `failing`: it failed and is retried with backoff;
 * `unsupported`: the runtime has no container events, or has them disabled; retried when the runtime restarts.
 */
export type HintState = "starting" | "healthy" | "failing" | "unsupported";

export interface HintStreamOptions {
  runtime: Runtime;
  clock: Clock;
  log: Logger;
  /** How long a stream must stay open to count as supported, milliseconds. */
  minStreamMs: number;
  /** Interval at which a runtime without events is queried for its version, to detect an upgrade, milliseconds. */
  versionPollMs: number;
  onHint: (hint: RuntimeHint) => void;
  onState: (state: HintState) => void;
  random?: () => number;
}

/** Follows the runtime's stream of container events and tracks how reliable it is. */
export class HintStream {
  readonly #options: HintStreamOptions;
  readonly #backoff: Backoff;
  #state: HintState = "starting";
  readonly #restart = new WakeableSleep();
  // For the open stream: whether it delivered a hint, and whether the runtime sends each event to every subscriber.
  #heard = false;
  #isBroadcast = false;
  #openedAt = Number.POSITIVE_INFINITY;
  // The connection for which event support was determined.
  #askedOn: number;

  constructor(options: HintStreamOptions) {
    this.#options = options;
    const { random, runtime } = options;
    this.#askedOn = runtime.connections();
    this.#backoff = new Backoff({ ...retryPolicies.runtimeEvents, ...(random ? { random } : {}) });
  }

  get state(): HintState {
    return this.#state;
  }

  /**
   * Whether the long relist period may be used: the open stream has delivered a hint, and the runtime sends each event
   * to every subscriber. An open stream is not sufficient, since containerd 1.7 sends each event to only one subscriber.
   */
  get isProven(): boolean {
    return this.#state === "healthy" && this.#heard && this.#isBroadcast;
  }

  /** Whether the stream was healthy and open before `time`, monotonic milliseconds. */
  isOpenSince(time: number): boolean {
    return this.#state === "healthy" && this.#openedAt < time;
  }

  /** Called when the runtime is reachable again: event support must be determined again. */
  runtimeRestarted(): void {
    this.#restart.wake();
  }

  /** Called after a successful call: detects a restart of the runtime during which no call failed. */
  runtimeAnswered(): void {
    if (this.#options.runtime.connections() !== this.#askedOn) this.runtimeRestarted();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const supported = await this.#follow(signal);
      if (signal.aborted) return;
      try {
        if (supported) await clock.sleep(this.#backoff.next(), signal);
        else await this.#awaitRestart(signal);
      } catch {
        return;
      }
    }
  }

  // Returns false if the runtime has no container events.
  async #follow(signal: AbortSignal): Promise<boolean> {
    const { runtime, clock, log, minStreamMs, onHint } = this.#options;
    using scope = childScope(signal);
    this.#heard = false;
    this.#isBroadcast = false;
    this.#openedAt = clock.monotonic();
    void this.#askDelivery(scope.signal);
    let real = false;
    const prove = () => {
      if (real) return;
      real = true;
      this.#backoff.reset();
      this.#enter("healthy");
    };
    const timer = clock.after(minStreamMs, prove);
    try {
      for await (const hint of runtime.hints(scope.signal)) {
        this.#heard = true;
        prove();
        onHint(hint);
      }
      if (signal.aborted) return true;
      // CRI-O without enable_pod_events accepts the call and ends the stream immediately without an error.
      if (!real) return this.#giveUp("the stream ended immediately");
      log.info({}, "runtime ended its container event stream");
    } catch (error) {
      if (signal.aborted) return true;
      if (codeOf(error) === "unsupported")
        return this.#giveUp("the runtime does not implement GetContainerEvents");
      if (this.#state !== "failing") log.warn({ err: error }, "runtime container event stream failed");
    } finally {
      timer.cancel();
      scope.abort(stopped("event stream ended"));
    }
    this.#enter("failing");
    return true;
  }

  #giveUp(why: string): false {
    this.#options.log.info({ why }, "runtime has no container events, relisting at the short period");
    this.#enter("unsupported");
    return false;
  }

  // Rejects when the signal aborts.
  async #awaitRestart(signal: AbortSignal): Promise<void> {
    const { clock, versionPollMs } = this.#options;
    this.#restart.clear();
    this.#askedOn = this.#options.runtime.connections();
    const before = await this.#version(signal);
    for (;;) {
      if (await this.#restart.wait(clock, versionPollMs, signal)) break;
      const now = await this.#version(signal);
      if (now && !isSameVersion(now, before)) break;
    }
    this.#backoff.reset();
    this.#enter("starting");
  }

  // Determined again for each subscription, since the runtime may have been upgraded.
  async #askDelivery(signal: AbortSignal): Promise<void> {
    const version = await this.#version(signal).catch(() => undefined);
    if (version && !signal.aborted) this.#isBroadcast = broadcastsEvents(version);
  }

  // Undefined while the runtime is unavailable. Rejects when the signal aborts.
  async #version(signal: AbortSignal): Promise<RuntimeVersion | undefined> {
    try {
      return await this.#options.runtime.version(signal);
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  #enter(state: HintState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#options.onState(state);
  }
}

function isSameVersion(one: RuntimeVersion, other: RuntimeVersion | undefined): boolean {
  return one.runtimeName === other?.runtimeName && one.runtimeVersion === other.runtimeVersion;
}
