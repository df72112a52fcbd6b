import { Counter, type Registry } from "@nodekeeper/core/lib";

/** The metrics of the API for other programs on the node. One for each registry. */
export function createLocalApiMetrics(registry: Registry) {
  return {
    watchesRefused: new Counter({
      name: "nodekeeper_server_watches_refused_total",
      help: "Watches of pod lifecycle events that were refused because too many were open.",
      registers: [registry],
    }),
  };
}
