import type { ErrorId } from "@nodekeeper/core/lib";

/**
 * State of a plugin's socket.
 * `registering`: the handshake is in progress or scheduled. `registered`: its handler accepted it.
 * `refused`: the plugin was notified of the reason; retried slowly, and when its socket changes. `failed`: retried with
 * backoff. `superseded`: a newer socket owns the name. `unavailable`: the socket file exists, but no process listens on it.
 */
export type PluginState = "registering" | "registered" | "refused" | "failed" | "superseded" | "unavailable";

/** Status of one socket, as returned by `list`. */
export interface PluginStatus {
  /** As presented by the plugin, also if refused because of it; truncated to 253 characters. Absent before GetInfo. */
  type?: string;
  name?: string;
  /** Absent until PluginInfo was validated. */
  endpoint?: string;
  versions?: string[];
  registrationSocket: string;
  state: PluginState;
  /** Time of the last state change, milliseconds since the epoch. */
  since: number;
  /** The last error or refusal, one line; absent if there is none. */
  reason?: string;
  /** The id of the error or refusal. */
  errorId?: ErrorId;
  /** Number of handshakes started for this socket file. */
  attempts: number;
  /** Generation of the accepted registration; absent while there is none. */
  generation?: number;
}

/** A change of a plugin's registration. */
export type PluginChange = { type: string; name: string } & (
  | { kind: "registered" }
  | { kind: "lost" | "refused"; reason: string }
);
