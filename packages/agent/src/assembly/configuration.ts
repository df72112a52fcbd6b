import type { LogLevel } from "@nodekeeper/core/lib";
import { ConfigurationWatcher, createConfigMetrics } from "../config/index.ts";
import { apiRoute } from "../server/index.ts";
import type { AgentContext } from "./context.ts";
import type { AgentPart } from "./part.ts";

export interface ConfigurationOptions {
  /** Sets the level of the log. */
  setLogLevel: (level: LogLevel) => void;
  /** Calls back at each SIGHUP. Returns a function that unsubscribes. */
  onHangup: (callback: () => void) => () => void;
  /** Called after the settings changed. */
  onChange: () => void;
}

/** Builds the watcher that reloads the configuration when it changes. */
export function configurationPart(
  context: AgentContext,
  { setLogLevel, onHangup, onChange }: ConfigurationOptions,
): AgentPart {
  const { sources, configuration, clock, log, registry, watches } = context;
  const watcher = new ConfigurationWatcher({
    sources,
    initial: configuration(),
    clock,
    log: log.child({ logger: "config" }),
    subscribe: onHangup,
    onChange: (changed) => {
      context.setConfiguration(changed);
      setLogLevel(changed.log.level);
      onChange();
    },
    onRefused: (message) => context.notify({ type: "Warning", reason: "ConfigurationRefused", message }),
    metrics: createConfigMetrics(registry),
    watches,
  });
  return {
    runnables: [watcher],
    checks: [watcher.healthCheck()],
    routes: [apiRoute("configuration", () => configuration())],
  };
}
