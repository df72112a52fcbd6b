import type { ErrorId } from "@nodekeeper/core/lib";

/**
 * State of a plugin's socket.
 * `registering`: the handshake is in progress or scheduled. `registered`: the handler accepted the plugin.
 * `refused`: the plugin was notified of the reason; retried slowly, and when its socket changes. `failed`:
 * retried with backoff. `superseded`: a newer socket owns the name. `unavailable`: the socket file exists,
 * but no process is listening.
 */
export type PluginState = "registering" | "registered" | "refused" | "failed" | "superseded" | "unavailable";

/** Status of one socket, as returned by `list`. */
export interface PluginStatus {
  /**
   * As presented by the plugin, even if it was refused because of it. Truncated to 253 characters. Undefined
   * before GetInfo.
   */
  type?: string;
  name?: string;
  /** Undefined until PluginInfo has been validated. */
  endpoint?: string;
  versions?: string[];
  registrationSocket: string;
  state: PluginState;
  /** Time of the last state change, milliseconds since the epoch. */
  since: number;
  /** The last error or refusal in one line. Undefined if there is none. */
  reason?: string;
  /** ID of the error or refusal. */
  errorId?: ErrorId;
  /** Number of handshakes started for this socket file. */
  attempts: number;
  /** Generation of the accepted registration. Undefined if there is none. */
  generation?: number;
}

/** A change of a plugin's registration. */
export type PluginChange = { type: string; name: string } & (
  | { kind: "registered" }
  | { kind: "lost"; reason: string }
  | { kind: "refused"; reason: string; errorId: ErrorId | undefined; uid: number | undefined }
  | { kind: "displaced"; reason: string; errorId: ErrorId; uid: number }
);
