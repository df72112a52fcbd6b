import { type Clock, TokenBucket } from "@nodekeeper/core/lib";
import type { PluginChange } from "../plugins/index.ts";
import type { AgentContext } from "./context.ts";

// All Events about the Node share one limit, which a user whose plugins are repeatedly refused must not exhaust.
const PER_USER = { burst: 3, perSecond: 1 / 600 };
const MOST_USERS = 128;

/**
 * Returns a function that records refused and displaced plugins as Events on the Node. Each user has a burst of three
 * Events, then one every ten minutes.
 */
export function pluginEvents(clock: Clock, notify: AgentContext["notify"]): (change: PluginChange) => void {
  const buckets = new Map<number | undefined, TokenBucket>();
  const bucketOf = (uid: number | undefined): TokenBucket => {
    const known = buckets.get(uid);
    if (known) return known;
    if (buckets.size >= MOST_USERS) buckets.clear();
    const bucket = new TokenBucket(clock, PER_USER);
    buckets.set(uid, bucket);
    return bucket;
  };
  return (change) => {
    const { kind, type, name } = change;
    if (kind !== "refused" && kind !== "displaced") return;
    const { uid, errorId, reason } = change;
    if (!bucketOf(uid).tryTake()) return;
    const user = uid === undefined ? "" : ` of user ID ${uid}`;
    const plugin = `${type || "plugin"} ${name}${user}`;
    const id = errorId === undefined ? "" : `${errorId}: `;
    if (kind === "refused")
      notify({ type: "Warning", reason: "PluginRefused", message: `${plugin} was refused: ${id}${reason}` });
    else
      notify({
        type: "Warning",
        reason: "PluginDisplaced",
        message: `The grace period of ${plugin} ended early: ${id}${reason}`,
      });
  };
}
