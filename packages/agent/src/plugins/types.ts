/** A plugin as it presented itself and was accepted. */
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
  /** Increases with each registration the agent accepts; tells a newer registration of a name from an older one. */
  generation: number;
}

/** Takes plugins of one type. The plugin manager calls it one registration at a time for each name. */
export interface PluginHandler {
  readonly type: string;
  /** Refuses with a NodekeeperError (code `invalid`, `unsupported` or `conflict`) whose message the plugin is told. Pure. */
  validate(candidate: Omit<PluginRegistration, "generation">): void;
  /**
   * Begins to serve the plugin. A registration of a name that is served already replaces it without a gap.
   * Throws when that can't be done now; it is then tried again with backoff while the socket stays.
   */
  register(registration: PluginRegistration, signal: AbortSignal): Promise<void>;
  /** The plugin is gone. Ignored by the handler when a newer generation of the name is served. */
  deregister(registration: PluginRegistration, reason: string): void;
}
