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
 * `starting`: asked, and not known yet; `healthy`: hints come; `failing`: the stream broke, asked again with backoff;
 * `unsupported`: this runtime has no events, or has them switched off; asked again when it restarts.
 */
export type HintState = "starting" | "healthy" | "failing" | "unsupported";

export interface HintStreamOptions {
  runtime: Runtime;
  clock: Clock;
  log: Logger;
  /** A stream that is open for so long is a real one, milliseconds. */
  settleMs: number;
  /** How often a runtime without events is asked for its version, milliseconds. */
  versionPollMs: number;
  onHint: (hint: RuntimeHint) => void;
  onState: (state: HintState) => void;
  random?: () => number;
}

/** Follows the runtime's event stream, and knows how far it can be relied on. */
export class HintStream {
  readonly #options: HintStreamOptions;
  readonly #backoff: Backoff;
  #state: HintState = "starting";
  readonly #restart = new WakeableSleep();
  // Of the stream that is open: whether a hint came on it, and whether the runtime sends each event to all.
  #heard = false;
  #isBroadcast = false;
  #openedAt = Number.POSITIVE_INFINITY;
  // What was found out about events holds for this connection of the runtime.
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
   * Whether pods may be listed rarely: a hint came on this very stream, and the runtime sends each event to every
   * subscriber. An open stream alone proves nothing: where subscribers share events, others take them.
   */
  get isProven(): boolean {
    return this.#state === "healthy" && this.#heard && this.#isBroadcast;
  }

  /** Whether the stream that is open was asked for before `time`, monotonic milliseconds, and is a real one. */
  isOpenSince(time: number): boolean {
    return this.#state === "healthy" && this.#openedAt < time;
  }

  /** The runtime was away and is back: what was found out about its events no longer holds. */
  runtimeRestarted(): void {
    this.#restart.wake();
  }

  /** The runtime has answered: it may have restarted more quickly than anybody could see from its calls. */
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

  // Gives false when the runtime has no events for us.
  async #follow(signal: AbortSignal): Promise<boolean> {
    const { runtime, clock, log, settleMs, onHint } = this.#options;
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
    const timer = clock.after(settleMs, prove);
    try {
      for await (const hint of runtime.hints(scope.signal)) {
        this.#heard = true;
        prove();
        onHint(hint);
      }
      if (signal.aborted) return true;
      // CRI-O with enable_pod_events off takes the call and ends it at once, without an error.
      if (!real) return this.#giveUp("the stream ended at once");
      log.info({}, "runtime ended its event stream");
    } catch (error) {
      if (signal.aborted) return true;
      if (codeOf(error) === "unsupported") return this.#giveUp("the runtime has no such call");
      if (this.#state !== "failing") log.warn({ err: error }, "runtime event stream failed");
    } finally {
      timer.cancel();
      scope.abort(stopped("event stream is over"));
    }
    this.#enter("failing");
    return true;
  }

  #giveUp(why: string): false {
    this.#options.log.info({ why }, "runtime gives no events; pods are listed at the short period");
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

  // Of the runtime that this stream is of: each subscription asks again.
  async #askDelivery(signal: AbortSignal): Promise<void> {
    const version = await this.#version(signal).catch(() => undefined);
    if (version && !signal.aborted) this.#isBroadcast = broadcastsEvents(version);
  }

  // Undefined while the runtime is away. Rejects when the signal aborts.
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
