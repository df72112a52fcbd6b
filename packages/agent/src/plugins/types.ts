/** An accepted plugin. */
export interface PluginRegistration {
  /** "ReporterPlugin", "DRAPlugin", ... */
  type: string;
  /** Unique within the type. */
  name: string;
  /** Absolute path of the socket that serves the plugin's own API. */
  endpoint: string;
  /** Absolute path of the socket in the watched directory. */
  registrationSocket: string;
  versions: string[];
  /** Increases with each accepted registration; distinguishes successive registrations of a name. */
  generation: number;
}

/** Handles plugins of one type. The plugin manager never makes overlapping calls for the same name. */
export interface PluginHandler {
  readonly type: string;
  /** Refuses with a NodekeeperError (`invalid`, `unsupported` or `conflict`), whose message is sent to the plugin. Pure. */
  validate(candidate: Omit<PluginRegistration, "generation">): void;
  /**
   * Starts using the plugin. A registration of a known name replaces the earlier one without a gap. Throws if this is
   * not possible now; it is then retried with backoff while the socket exists.
   */
  register(registration: PluginRegistration, signal: AbortSignal): Promise<void>;
  /** Called when the plugin disconnected. The handler ignores it if a newer generation of the name is registered. */
  deregister(registration: PluginRegistration, reason: string): void;
}
