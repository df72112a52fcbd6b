/**
 * Where a plugin's socket stands.
 * `registering`: a handshake is under way or about to be. `registered`: its handler serves it.
 * `refused`: it was told why not; tried again slowly, and when its socket changes. `failed`: tried again with backoff.
 * `superseded`: a newer socket has its name. `gone`: the socket file is there, no process listens on it.
 */
export type PluginState = "registering" | "registered" | "refused" | "failed" | "superseded" | "gone";

/** What `list` tells of one socket. */
export interface PluginStatus {
  /** As the plugin presented itself, also when refused for it; cut at 253 characters. Absent until it did. */
  type?: string;
  name?: string;
  /** Absent until what it presented passed the checks. */
  endpoint?: string;
  versions?: string[];
  registrationSocket: string;
  state: PluginState;
  /** When the state was entered, milliseconds since the epoch. */
  since: number;
  /** The last error or refusal, one line; absent when nothing is wrong. */
  reason?: string;
  /** Handshakes begun for this socket file. */
  attempts: number;
  /** Of the accepted registration; absent while there is none. */
  generation?: number;
}
