import type { Health, Plugin, PluginRow } from "./groups.ts";

const types: Record<string, string> = {
  ReporterPlugin: "reporter",
  EvictionPlugin: "eviction plugin",
  DRAPlugin: "device driver",
};

/** Returns a plugin type in words. */
export function typeText(type: string): string {
  return types[type] ?? (type || "type not known yet");
}

const states: Record<string, string> = {
  registering: "registering",
  registered: "registered",
  refused: "registration refused",
  failed: "registration failed",
  superseded: "superseded by a newer socket",
  unavailable: "unavailable: no process listens on its socket",
  "in-tree": "in-tree",
  lost: "disconnected, its last content stays published for its grace period",
};

/** Returns a state in words. For a serving plugin, includes whether its last call failed. */
export function stateText({ state, error }: Pick<PluginRow, "state" | "error">): string {
  const text = states[state] ?? state;
  const isServing = state === "registered" || state === "in-tree";
  return isServing && error ? `${text}, its last call failed` : text;
}

/** Health in words, next to its color and mark. */
export const healthText: Record<Health, string> = {
  failing: "failing",
  impaired: "with problems",
  changing: "registering",
  healthy: "healthy",
};

/** "7 plugins: 1 failing, 6 healthy." */
export function summaryText(plugins: readonly Plugin[]): string {
  const counts = (Object.keys(healthText) as Health[])
    .map((health) => ({ health, count: plugins.filter((each) => each.health === health).length }))
    .filter(({ count }) => count > 0)
    .map(({ health, count }) => `${count} ${healthText[health]}`);
  return `${plugins.length} ${plugins.length === 1 ? "plugin" : "plugins"}: ${counts.join(", ")}.`;
}

/**
 * Returns what an operator should do about a plugin in this state if its error is not in the catalog. Undefined if
 * there is nothing to do.
 */
export function adviceText({ row }: Pick<Plugin, "row">): string | undefined {
  switch (row.state) {
    case "refused":
      return "The message states what is accepted. Fix the plugin; its registration is retried automatically.";
    case "failed":
      return "Check that the plugin's process runs and responds on its socket. Its registration is retried automatically.";
    case "unavailable":
      return "No process listens on its socket. Start the plugin again, or remove the socket's file if it was removed for good.";
    case "lost":
      return "Start the plugin again before its grace period ends; after it, what the plugin reported is withdrawn.";
    case "superseded":
      return "Nothing, if the plugin was updated. Otherwise stop one of the two processes: only one can have the name.";
  }
  if (row.error) return "Check the plugin's log at the time of the error. The agent calls the plugin again.";
  if (row.problems.length > 0)
    return "The parts named here are not published or not followed; the rest is. Fix them in the plugin: its next report replaces this one.";
  return undefined;
}
