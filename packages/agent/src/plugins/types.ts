/** An accepted plugin. */
export interface PluginRegistration {
  /** "ReporterPlugin", "DRAPlugin", ... */
  type: string;
  /** Unique within the type. */
  name: string;
  /** Absolute path of the socket that serves the plugin's API. */
  endpoint: string;
  /** Absolute path of the socket in the watched directory. */
  registrationSocket: string;
  versions: string[];
  /** ID of the user that the sockets belong to according to `SocketTrust`. */
  uid: number;
  /** Increases with each accepted registration. Distinguishes successive registrations of a name. */
  generation: number;
}

/** The PluginInfo that a plugin presents, before it is accepted. */
export type PresentedPlugin = Omit<PluginRegistration, "generation" | "uid">;

/** Handles plugins of one type. The plugin manager never makes overlapping calls for the same name. */
export interface PluginHandler {
  readonly type: string;
  /** Names of in-tree plugins, which other plugins must not use. Default: none. */
  readonly inTreeNames?: ReadonlySet<string>;
  /**
   * Rejects a plugin with a NodekeeperError (`invalid`, `unsupported` or `conflict`), whose message is sent
   * to the plugin. Pure.
   */
  validate(candidate: PresentedPlugin): void;
  /**
   * Starts using the plugin. A registration of a known name replaces the earlier one without a gap. Throws if
   * this is not possible now; the registration is then retried with backoff while the socket exists.
   */
  register(registration: PluginRegistration, signal: AbortSignal): Promise<void>;
  /** Called when the plugin disconnected. Must be ignored if a newer generation of the name is registered. */
  deregister(registration: PluginRegistration, reason: string): void;
  /**
   * Returns how long the name of a lost plugin stays with its user, in milliseconds: while the handler keeps
   * state for it. Infinity if there is no time limit.
   */
  holdMs(name: string): number;
  /**
   * Ends the grace period of a lost plugin early by dropping its state. Ignored if the plugin is registered.
   */
  forget(name: string, reason: string): void;
}
