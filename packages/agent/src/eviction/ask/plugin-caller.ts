import type { Answered } from "@nodekeeper/api/decide";
import { EvictionPluginCallFailed } from "@nodekeeper/api/errors";
import { childScope, codeOf, errorIdOf, messageOf, withDeadline } from "@nodekeeper/core/lib";
import type { Exchange } from "../../plugins/index.ts";
import type { EvictionContext } from "../context.ts";
import type { PluginMethod } from "../metrics.ts";
import { CallDeadline } from "./call-deadline.ts";
import type { ServedPlugin } from "./served-plugin.ts";

export type PluginCallerOptions = Pick<EvictionContext, "clock" | "log" | "metrics">;

export interface PluginCall<T> {
  method: PluginMethod;
  /** Returns a summary of the request. Called when the call has ended. */
  request: () => object;
  /** The result if the plugin does not implement the call. */
  nothing: T;
  work: (signal: AbortSignal) => Promise<T>;
}

type Result = Pick<Exchange, "answer" | "error" | "isUnimplemented">;

/** Makes the calls of rounds, each with a deadline, and records their results in the plugin. */
export class PluginCaller {
  readonly #options: PluginCallerOptions;

  constructor(options: PluginCallerOptions) {
    this.#options = options;
  }

  /**
   * Calls a plugin. Returns its answer, or why the call failed. Every call of a round is optional: UNIMPLEMENTED yields
   * `nothing`, and the call is not repeated over that connection. A plugin whose registration has ended is not called.
   * Throws only the signal's reason.
   * @param timeoutMs the configured deadline; see `CallDeadline`
   */
  async call<T extends object>(
    plugin: ServedPlugin,
    { method, request, nothing, work }: PluginCall<T>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Answered<T>> {
    signal.throwIfAborted();
    if (plugin.scope.signal.aborted) return { failure: departureOf(plugin) };
    if (plugin.calls.lacks?.(method)) return { answer: nothing };
    const { clock, metrics } = this.#options;
    const startedAt = clock.monotonic();
    const deadline = deadlineOf(plugin, method);
    const deadlineMs = deadline.next(timeoutMs, startedAt);
    const note = (result: Result) => {
      const ms = clock.monotonic() - startedAt;
      plugin.exchanges.note({ call: method, at: clock.now(), ms, request: request(), ...result });
    };
    // Aborted with the round or when the registration ends.
    using scope = childScope(signal);
    const onDisconnect = () => scope.abort(plugin.scope.signal.reason);
    plugin.scope.signal.addEventListener("abort", onDisconnect, { once: true });
    try {
      // No description: the failure is shown together with the method.
      const answer = await withDeadline(clock, { ms: deadlineMs }, scope.signal, work);
      deadline.kept(clock.monotonic() - startedAt);
      this.#answered(plugin, method);
      plugin.unimplemented.delete(method);
      note({ answer });
      return { answer };
    } catch (error) {
      signal.throwIfAborted();
      if (plugin.scope.signal.aborted) {
        const failure = departureOf(plugin);
        note({ error: failure });
        return { failure };
      }
      // A plugin may return DEADLINE_EXCEEDED before its deadline. That counts as a failure.
      const ms = clock.monotonic() - startedAt;
      const isLate = codeOf(error) === "deadline" && ms >= deadlineMs;
      if (isLate) deadline.missed();
      else deadline.kept(ms);
      if (codeOf(error) === "unsupported") {
        this.#answered(plugin, method);
        this.#notImplemented(plugin, method);
        note({ isUnimplemented: true });
        return { answer: nothing };
      }
      const failure = isLate
        ? `deadline of ${deadlineMs / 1000} s exceeded`
        : messageOf(error).slice(0, 1_000);
      this.#failed(plugin, method, error, failure);
      note({ error: failure });
      return isLate ? { failure, late: true } : { failure };
    } finally {
      plugin.scope.signal.removeEventListener("abort", onDisconnect);
      if (!plugin.scope.signal.aborted) {
        const seconds = (clock.monotonic() - startedAt) / 1000;
        metrics.callDuration.observe({ plugin: plugin.name }, seconds);
      }
    }
  }

  #answered(plugin: ServedPlugin, method: PluginMethod): void {
    const { clock, log } = this.#options;
    if (plugin.errors.delete(method)) {
      log.info({ plugin: plugin.name, method }, "eviction plugin no longer fails");
    }
    plugin.answeredAt = clock.now();
  }

  #notImplemented(plugin: ServedPlugin, method: PluginMethod): void {
    if (plugin.unimplemented.has(method)) return;
    plugin.unimplemented.add(method);
    this.#options.log.info(
      { plugin: plugin.name, method },
      "eviction plugin does not implement an optional call",
    );
  }

  #failed(plugin: ServedPlugin, method: PluginMethod, error: unknown, failure: string): void {
    const { clock, log, metrics } = this.#options;
    const code = codeOf(error);
    const message = `${method}: ${failure}`.slice(0, 500);
    metrics.callFailures.inc({ plugin: plugin.name, method, code });
    const since = plugin.errors.get(method)?.since;
    const errorId = errorIdOf(error) ?? EvictionPluginCallFailed.id;
    plugin.errors.set(method, { message, id: errorId, since: since ?? clock.now() });
    log[since === undefined ? "warn" : "debug"](
      { err: error, errorId, plugin: plugin.name, method },
      "eviction plugin failed",
    );
  }
}

/** Returns the failure of an instance whose registration ended during the round. */
export function departureOf({ replaced }: Pick<ServedPlugin, "replaced">): string {
  return replaced ? "replaced during the round" : "disconnected during the round";
}

function deadlineOf({ deadlines }: ServedPlugin, method: PluginMethod): CallDeadline {
  const known = deadlines.get(method);
  if (known) return known;
  const added = new CallDeadline();
  deadlines.set(method, added);
  return added;
}
