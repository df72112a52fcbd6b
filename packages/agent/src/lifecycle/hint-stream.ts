import { Backoff, childScope, codeOf, retryPolicies, stopped } from "@nodekeeper/core/lib";
import { broadcastsEvents, type RuntimeVersion } from "../runtime/index.ts";
import type { LifecycleContext } from "./context.ts";
import type { Hints } from "./hints.ts";

/** Follows the runtime's stream of container events. Reopens it when it ends, fails or misses changes. */
export class HintStream {
  readonly #context: LifecycleContext;
  readonly #hints: Hints;
  readonly #backoff: Backoff;

  constructor(context: LifecycleContext, hints: Hints) {
    this.#context = context;
    this.#hints = hints;
    this.#backoff = new Backoff({ ...retryPolicies.runtimeEvents, random: context.random });
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    while (!signal.aborted) {
      const isSupported = await this.#follow(signal);
      if (signal.aborted) return;
      try {
        if (isSupported) await clock.sleep(this.#backoff.next(), signal);
        else await this.#awaitRestart(signal);
      } catch {
        return;
      }
    }
  }

  // Returns false if the runtime does not support container events.
  async #follow(signal: AbortSignal): Promise<boolean> {
    const { runtime, clock, log, settings } = this.#context;
    const hints = this.#hints;
    const reopen = hints.opening();
    using scope = childScope(signal, reopen);
    void this.#askDelivery(scope.signal);
    let isReal = false;
    const prove = () => {
      if (isReal) return;
      isReal = true;
      this.#backoff.reset();
      hints.opened();
    };
    const timer = clock.after(settings.minStreamMs, prove);
    try {
      for await (const hint of runtime.hints(scope.signal)) {
        prove();
        hints.add(hint);
      }
      if (signal.aborted || reopen.aborted) return true;
      // CRI-O without enable_pod_events accepts the call, and ends the stream immediately without an error.
      if (!isReal) return this.#giveUp("the stream ended immediately");
      log.info({}, "runtime ended its container event stream");
    } catch (error) {
      if (signal.aborted) return true;
      if (reopen.aborted) {
        log.info({}, "runtime container event stream missed changes, opening it again");
        return true;
      }
      if (codeOf(error) === "unsupported")
        return this.#giveUp("the runtime does not implement GetContainerEvents");
      if (hints.state !== "failing") log.warn({ err: error }, "runtime container event stream failed");
    } finally {
      timer.cancel();
      scope.abort(stopped("event stream ended"));
    }
    hints.enter("failing");
    return true;
  }

  #giveUp(why: string): false {
    this.#context.log.info({ why }, "runtime has no container events, relisting at the short period");
    this.#hints.enter("unsupported");
    return false;
  }

  // Resolves when the runtime has restarted or its version has changed. Rejects when the signal aborts.
  async #awaitRestart(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#context;
    const { restarts } = this.#hints;
    restarts.clear();
    const before = await this.#version(signal);
    for (;;) {
      if (await restarts.wait(clock, settings.versionPollMs, signal)) break;
      const now = await this.#version(signal);
      if (now && !isSameVersion(now, before)) break;
    }
    this.#backoff.reset();
    this.#hints.enter("starting");
  }

  // Queried for each subscription, because the runtime may have been upgraded.
  async #askDelivery(signal: AbortSignal): Promise<void> {
    const version = await this.#version(signal).catch(() => undefined);
    if (version && !signal.aborted && broadcastsEvents(version)) this.#hints.broadcasts();
  }

  // Undefined if the runtime is unavailable. Rejects when the signal aborts.
  async #version(signal: AbortSignal): Promise<RuntimeVersion | undefined> {
    try {
      return await this.#context.runtime.version(signal);
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }
}

function isSameVersion(one: RuntimeVersion, other: RuntimeVersion | undefined): boolean {
  return one.runtimeName === other?.runtimeName && one.runtimeVersion === other.runtimeVersion;
}
