import {
  type Clock,
  childScope,
  codeOf,
  errorIdOf,
  type Logger,
  messageOf,
  withDeadline,
} from "@nodekeeper/core/lib";
import type { Exchange } from "../../plugins/index.ts";
import type { Answered } from "../decide/answers.ts";
import type { EvictionRoundMetrics, PluginMethod } from "../round-metrics.ts";
import type { EvictionSettings } from "../round-settings.ts";
import type { ServedPlugin } from "./served-plugin.ts";

// The timeout of a plugin that exceeded a deadline, milliseconds, until it answers in time or the period below is over:
// a plugin that hangs must not delay every round.
const SUSPECT_MS = 500;
const SUSPICION_LASTS_MS = 60_000;

export interface PluginCallerOptions {
  settings: () => Pick<EvictionSettings, "callTimeoutMs" | "syncPeriodMs">;
  clock: Clock;
  log: Logger;
  metrics: EvictionRoundMetrics;
}

/** A call to make. */
export interface PluginCall<T> {
  method: PluginMethod;
  /** A summary of its request, made when it has ended. */
  request: () => object;
  /** The answer of a plugin that does not implement the call. */
  nothing: T;
  work: (signal: AbortSignal) => Promise<T>;
}

type Result = Pick<Exchange, "answer" | "error" | "isUnimplemented">;

/** Makes the calls of rounds, each with a deadline, and keeps with the plugin how they ended. */
export class PluginCaller {
  readonly #options: PluginCallerOptions;

  constructor(options: PluginCallerOptions) {
    this.#options = options;
  }

  /** The deadline of a call, milliseconds: at most one period, so that a slow plugin does not delay the next round. */
  get timeoutMs(): number {
    const { callTimeoutMs, syncPeriodMs } = this.#options.settings();
    return Math.min(callTimeoutMs, syncPeriodMs);
  }

  /**
   * Calls a plugin: its answer, or why it failed. Each call of a round is optional: UNIMPLEMENTED is `nothing`, and the call
   * is not made again over that connection. Throws only the signal's reason.
   */
  async call<T extends object>(
    plugin: ServedPlugin,
    { method, request, nothing, work }: PluginCall<T>,
    signal: AbortSignal,
  ): Promise<Answered<T>> {
    if (plugin.calls.lacks?.(method)) return { answer: nothing };
    const { clock, metrics } = this.#options;
    const startedAt = clock.monotonic();
    const note = (result: Result) => {
      const ms = clock.monotonic() - startedAt;
      plugin.exchanges.note({ call: method, at: clock.now(), ms, request: request(), ...result });
    };
    // Ends with the round and with the registration.
    using scope = childScope(signal);
    const onDisconnect = () => scope.abort(plugin.scope.signal.reason);
    plugin.scope.signal.addEventListener("abort", onDisconnect, { once: true });
    try {
      // The method is named where the failure is shown.
      const answer = await withDeadline(clock, this.#timeoutOf(plugin), {}, scope.signal, work);
      this.#answered(plugin, method, startedAt);
      plugin.unimplemented.delete(method);
      note({ answer });
      return { answer };
    } catch (error) {
      signal.throwIfAborted();
      if (codeOf(error) === "unsupported") {
        this.#answered(plugin, method, startedAt);
        this.#notImplemented(plugin, method);
        note({ isUnimplemented: true });
        return { answer: nothing };
      }
      this.#failed(plugin, method, error);
      const failure = messageOf(error).slice(0, 1_000);
      note({ error: failure });
      return { failure };
    } finally {
      plugin.scope.signal.removeEventListener("abort", onDisconnect);
      if (!plugin.scope.signal.aborted) {
        const seconds = (clock.monotonic() - startedAt) / 1000;
        metrics.callDuration.observe({ plugin: plugin.name }, seconds);
      }
    }
  }

  #answered(plugin: ServedPlugin, method: PluginMethod, startedAt: number): void {
    const { clock, log } = this.#options;
    if (plugin.errors.delete(method)) {
      log.info({ plugin: plugin.name, method }, "eviction plugin no longer fails");
    }
    plugin.answeredAt = clock.now();
    if (clock.monotonic() - startedAt < SUSPECT_MS) plugin.suspects.delete(method);
  }

  #notImplemented(plugin: ServedPlugin, method: PluginMethod): void {
    if (plugin.unimplemented.has(method)) return;
    plugin.unimplemented.add(method);
    this.#options.log.info(
      { plugin: plugin.name, method },
      "eviction plugin does not implement an optional call",
    );
  }

  #failed(plugin: ServedPlugin, method: PluginMethod, error: unknown): void {
    const { clock, log, metrics } = this.#options;
    const code = codeOf(error);
    const message = `${method}: ${messageOf(error)}`.slice(0, 500);
    if (code === "deadline") {
      const since = plugin.suspects.get(method);
      if (since === undefined || clock.monotonic() - since >= SUSPICION_LASTS_MS) {
        plugin.suspects.set(method, clock.monotonic());
      }
    }
    metrics.callFailures.inc({ plugin: plugin.name, method, code });
    const since = plugin.errors.get(method)?.since;
    const errorId = errorIdOf(error) ?? "NK1603";
    plugin.errors.set(method, { message, id: errorId, since: since ?? clock.now() });
    log[since === undefined ? "warn" : "debug"](
      { err: error, errorId, plugin: plugin.name, method },
      "eviction plugin failed",
    );
  }

  #timeoutOf(plugin: ServedPlugin): number {
    const now = this.#options.clock.monotonic();
    const isSuspect = [...plugin.suspects.values()].some((since) => now - since < SUSPICION_LASTS_MS);
    return isSuspect ? Math.min(SUSPECT_MS, this.timeoutMs) : this.timeoutMs;
  }
}
