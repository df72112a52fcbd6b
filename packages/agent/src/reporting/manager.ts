import { ReporterDisconnected, ReporterNotResponding, StateNotWritable } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";
import {
  childScope,
  codeOf,
  completed,
  elapsedSince,
  errorIdOf,
  type HealthResult,
  messageOf,
  NodekeeperError,
  type Runnable,
  type ScopedSignal,
  stopped,
  type Timer,
  untilAborted,
  type Writable,
} from "@nodekeeper/core/lib";
import {
  checkSupportedVersion,
  joinedErrors,
  type PluginExchanges,
  type PluginHandler,
  type PluginRegistration,
  type PresentedPlugin,
} from "../plugins/index.ts";
import { Checkpoint } from "./checkpoint.ts";
import { type CollectMethod, collect } from "./collect.ts";
import type { Contents } from "./content.ts";
import type { ReportingContext, Reports } from "./context.ts";
import {
  type Endpoint,
  endpointStatus,
  exchangesOf,
  newEndpoint,
  noteNoStream,
  objectsOf,
  type ReporterStatus,
} from "./endpoint.ts";
import { forgetPlugin } from "./metrics.ts";
import { readingMessage } from "./read-message.ts";
import { Refresh } from "./refresh.ts";
import { isSameMessage, kept, type ReportMessage } from "./report-message.ts";
import { type ContentSource, inTreeSource, type ReporterSource, socketSource } from "./source.ts";

const MOST_ERROR_LENGTH = 1_000;
const REPORTER_VERSIONS = ["v1alpha1"];

type OwnEndpoint = Writable<Endpoint>;

export interface ReporterManagerOptions {
  inTree: readonly ReporterSource[];
  /** Maximum size of a plugin's message, in bytes. */
  maxContentBytes: number;
  /** Called with the objects (`kindKey`) whose content may have changed. */
  onChange: (objects: ReadonlySet<string>) => void;
}

/**
 * Manages the content of all reporter plugins. It reads registered and in-tree plugins, keeps the last content of lost
 * plugins for the grace period, checkpoints contents, and reports which objects changed. It is the PluginHandler of
 * reporter plugins that register over sockets.
 */
export class ReporterManager implements Runnable, PluginHandler, Reports {
  readonly name = "reporter-manager";
  readonly type = "ReporterPlugin";
  readonly #options: ReporterManagerOptions & ReportingContext;
  readonly #endpoints = new Map<string, OwnEndpoint>();
  readonly #checkpoint: Checkpoint;
  readonly #refresh: Refresh;
  #running: ScopedSignal | undefined;
  #startedAt = 0;
  readonly #collecting = new Set<Promise<void>>();
  #returning: Timer | undefined;

  constructor(context: ReportingContext, options: ReporterManagerOptions) {
    const { clock, turns } = context;
    const { onChange } = options;
    this.#options = { ...context, ...options };
    const checkpoint = new Checkpoint(context);
    this.#checkpoint = checkpoint;
    this.#refresh = new Refresh({
      clock,
      turns,
      *read(endpoint) {
        Object.assign(endpoint, yield* readingMessage(endpoint, context));
        yield;
        checkpoint.save(endpoint);
      },
      onChange,
    });
  }

  /** Names of in-tree plugins. External plugins must not use them. */
  get inTreeNames(): ReadonlySet<string> {
    return new Set(this.#options.inTree.map((reporter) => reporter.name));
  }

  /**
   * Restores the plugins' last contents from the checkpoint. Call once, before `run` and before anything is published.
   */
  restore(): void {
    const { clock, log, bootTime, returnMs } = this.#options;
    const boot = bootTime();
    for (const stored of this.#checkpoint.load()) {
      const inTree = this.inTreeNames.has(stored.plugin);
      if (this.#options.inTree.some(({ name, startsEmpty }) => startsEmpty && name === stored.plugin))
        continue;
      const endpoint = this.#endpoint(stored.plugin, inTree);
      endpoint.message = stored.content;
      endpoint.updatedAt = stored.updatedAt;
      Object.assign(endpoint, completed(readingMessage(endpoint, this.#options)));
      // In-tree plugins report soon after startup. Their restored content remains until then.
      if (inTree) continue;
      // A plugin that was registered when the agent stopped gets a full grace period. Every plugin gets at least
      // `returnMs` to register again.
      const { stoppedAt, stoppedIn = null } = stored;
      const stoppedFor = elapsedSince({ at: stoppedAt, boot: stoppedIn }, clock.now(), boot);
      const since = Math.min(stoppedAt ?? clock.now(), clock.now() - stoppedFor);
      this.#stop(endpoint, "not registered since the agent started", {
        since,
        stoppedFor,
        atLeast: returnMs,
        boot,
      });
      if (stoppedAt === null) this.#awaitReturn(endpoint);
    }
    if (this.#endpoints.size > 0)
      log.info({ plugins: [...this.#endpoints.keys()] }, "restored reporter contents");
  }

  // A plugin that was registered when the agent stopped ranks as live until the startup grace period ends.
  #awaitReturn(endpoint: OwnEndpoint): void {
    const { clock, returnMs, onChange } = this.#options;
    endpoint.lostFrom = clock.monotonic() + returnMs;
    this.#returning ??= clock.after(returnMs, () => {
      const lost = this.lost();
      onChange(objectsOf([...this.#endpoints.values()].filter(({ name }) => lost.has(name))));
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const scope = childScope(signal);
    this.#running = scope;
    this.#startedAt = this.#options.clock.monotonic();
    for (const reporter of this.#options.inTree) {
      this.#start(this.#endpoint(reporter.name, true), inTreeSource(reporter));
    }
    this.#options.onChange(objectsOf(this.#endpoints.values()));
    await untilAborted(signal);
    for (const endpoint of this.#endpoints.values()) {
      endpoint.grace?.cancel();
      endpoint.scope?.abort(signal.reason);
    }
    this.#returning?.cancel();
    await Promise.allSettled(this.#collecting);
    this.#refresh.close();
    this.#checkpoint.close();
    this.#running = undefined;
    scope.release();
  }

  validate(candidate: PresentedPlugin): void {
    checkSupportedVersion(candidate, REPORTER_VERSIONS);
  }

  async register(registration: PluginRegistration): Promise<void> {
    if (!this.#running || this.#running.signal.aborted)
      throw new NodekeeperError("unavailable", "reporting is not running");
    const source = socketSource(registration.endpoint, this.#options.maxContentBytes);
    const endpoint = this.#endpoint(registration.name, false);
    endpoint.registration = registration;
    this.#start(endpoint, source);
    this.#options.onChange(objectsOf([endpoint]));
    this.#options.log.info(
      { plugin: registration.name, endpoint: registration.endpoint },
      "reporter plugin registered",
    );
  }

  deregister(registration: PluginRegistration, reason: string): void {
    const endpoint = this.#endpoints.get(registration.name);
    if (endpoint?.registration?.generation !== registration.generation) return;
    this.#options.log.warn(
      { errorId: ReporterDisconnected.id, plugin: registration.name, reason },
      "reporter plugin disconnected, its content stays published for the grace period",
    );
    endpoint.registration = undefined;
    this.#stop(endpoint, reason);
    this.#options.onChange(objectsOf([endpoint]));
  }

  holdMs(): number {
    return this.#options.settings().pluginGracePeriod;
  }

  forget(name: string, reason: string): void {
    const endpoint = this.#endpoints.get(name);
    if (!endpoint || endpoint.stoppedAt === undefined) return;
    endpoint.grace?.cancel();
    endpoint.lostReason = reason;
    this.#drop(endpoint, true);
  }

  /** Returns the last content of each plugin, by name. Contents are immutable: changed content is a new object. */
  contents(): Contents {
    this.#refresh.now();
    return new Map([...this.#endpoints.values()].map((endpoint) => [endpoint.name, endpoint.content]));
  }

  /** Returns the names of lost plugins. Their content ranks below that of live plugins. */
  lost(): ReadonlySet<string> {
    const now = this.#options.clock.monotonic();
    const lost = [...this.#endpoints.values()].filter(
      ({ stoppedAt, lostFrom }) => stoppedAt !== undefined && lostFrom <= now,
    );
    return new Set(lost.map(({ name }) => name));
  }

  /** Writes changed contents to the checkpoint. Call before they are published. Never rejects. */
  async flush(): Promise<void> {
    await this.#checkpoint.flush();
  }

  /** Applies a changed grace period to plugins that are already lost. */
  settingsChanged(): void {
    for (const endpoint of this.#endpoints.values())
      if (endpoint.stoppedAt !== undefined) this.#armGrace(endpoint);
  }

  status(): ReporterStatus[] {
    return [...this.#endpoints.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).map(endpointStatus);
  }

  /** Returns the time since each plugin last sent its content, in seconds. */
  contentAges(): [plugin: string, seconds: number][] {
    const { clock } = this.#options;
    return [...this.#endpoints.values()].flatMap(({ name, message, receivedAt, updatedAt = 0 }) => {
      // Content from an earlier agent process has only a wall clock time.
      const ageMs = receivedAt === undefined ? clock.now() - updatedAt : clock.monotonic() - receivedAt;
      return message ? [[name, Math.max(ageMs, 0) / 1000]] : [];
    });
  }

  /** Returns the last exchanges with a plugin. Undefined if the name is unknown. */
  exchanges(name: string): PluginExchanges | undefined {
    const endpoint = this.#endpoints.get(name);
    return endpoint && exchangesOf(endpoint);
  }

  /** Fails while reporting is not running, an in-tree plugin does not respond, or the checkpoint cannot be written. */
  fetcherHealth(): HealthResult {
    const { clock, settings } = this.#options;
    if (!this.#running) return { ok: false, message: "reporting has not started" };
    const { collectInterval, callTimeout } = settings();
    const latest = clock.monotonic() - 2 * collectInterval - callTimeout;
    const failing = [...this.#endpoints.values()].filter(
      ({ stoppedAt, lastSuccess = this.#startedAt }) => stoppedAt === undefined && lastSuccess < latest,
    );
    const names = failing.map(
      ({ name, errors }) => `${name} (${joinedErrors(errors.values())?.message ?? "no response yet"})`,
    );
    const failure = { message: `no content from ${names.join(", ")}`, errorId: ReporterNotResponding.id };
    if (failing.some(({ inTree }) => inTree)) return { ok: false, ...failure };
    const { lastError } = this.#checkpoint;
    if (lastError) return { ok: false, message: `checkpoint: ${lastError}`, errorId: StateNotWritable.id };
    // Failing external plugins do not make the agent unready.
    if (failing.length > 0) return { ok: true, warning: failure.message, ...failure };
    return { ok: true, message: counted(this.#endpoints.size, "plugin") };
  }

  #endpoint(name: string, inTree: boolean): OwnEndpoint {
    const known = this.#endpoints.get(name);
    if (known) return known;
    const endpoint = newEndpoint(name, inTree, this.#options.clock.now());
    this.#endpoints.set(name, endpoint);
    return endpoint;
  }

  #start(endpoint: OwnEndpoint, source: ContentSource): void {
    const { clock, settings, metrics } = this.#options;
    endpoint.scope?.abort(stopped("replaced by a newer registration"));
    endpoint.grace?.cancel();
    endpoint.stoppedAt = undefined;
    endpoint.stoppedIn = undefined;
    endpoint.lostReason = undefined;
    endpoint.errors.clear();
    endpoint.lastSuccess = clock.monotonic();
    this.#checkpoint.save(endpoint);
    const scope = childScope(this.#running!.signal);
    endpoint.scope = scope;
    const plugin = endpoint.name;
    const collecting = collect(
      {
        source,
        clock,
        settings,
        onContent: (message) => this.#receive(endpoint, scope.signal, message),
        onExchange: (call, ms, error) =>
          endpoint.exchanges.note({
            ...{ call, at: clock.now(), ms },
            error: error === undefined ? undefined : messageOf(error).slice(0, MOST_ERROR_LENGTH),
          }),
        onWorking: (method) => void endpoint.errors.delete(method),
        onNoStream: () => noteNoStream(endpoint, clock.now()),
        onFailure: (method, error) => this.#failed(endpoint, scope.signal, method, error),
        onThrottled: () => metrics.throttled.inc({ plugin }),
      },
      scope.signal,
    ).finally(() => {
      source.close();
      scope.release();
      this.#collecting.delete(collecting);
    });
    this.#collecting.add(collecting);
    this.#countStates();
  }

  #receive(endpoint: OwnEndpoint, signal: AbortSignal, message: ReportMessage): void {
    if (signal.aborted) return;
    const { clock, metrics } = this.#options;
    metrics.messages.inc({ plugin: endpoint.name });
    endpoint.receivedAt = clock.monotonic();
    endpoint.contactAt = clock.now();
    endpoint.lastSuccess = clock.monotonic();
    if (endpoint.message && isSameMessage(endpoint.message, message)) return;
    endpoint.message = kept(message);
    endpoint.updatedAt = clock.now();
    this.#refresh.add(endpoint);
  }

  #failed(endpoint: OwnEndpoint, signal: AbortSignal, method: CollectMethod, error: unknown): void {
    if (signal.aborted) return;
    const { clock, log, metrics } = this.#options;
    const code = codeOf(error);
    metrics.failures.inc({ plugin: endpoint.name, method, code });
    const text = messageOf(error);
    // Errors of gRPC calls already name the method.
    const message = text.startsWith(method) ? text : `${method}: ${text}`;
    const before = endpoint.errors.get(method);
    const again = before?.message === message;
    const errorId = errorIdOf(error) ?? ReporterNotResponding.id;
    endpoint.errors.set(method, { message, id: errorId, since: before?.since ?? clock.now() });
    log[again ? "debug" : "warn"](
      { err: error, errorId, plugin: endpoint.name, method },
      "reporter plugin failed, its last content stays published",
    );
  }

  /**
   * Starts the grace period, during which the last content remains published.
   * @param since when the plugin was lost, in wall clock milliseconds
   * @param stoppedFor the verified time since then, in milliseconds
   * @param atLeast minimum remaining time, in milliseconds
   * @param boot current boot ID and uptime
   */
  #stop(
    endpoint: OwnEndpoint,
    reason: string,
    { since = this.#options.clock.now(), stoppedFor = 0, atLeast = 0, boot = this.#options.bootTime() } = {},
  ): void {
    const now = this.#options.clock.monotonic();
    endpoint.lostReason = reason;
    endpoint.lostFrom = now;
    endpoint.stoppedAt = since;
    endpoint.stoppedIn = boot && { id: boot.id, uptimeMs: Math.round(boot.uptimeMs - stoppedFor) };
    endpoint.graceFrom = now - stoppedFor;
    endpoint.graceNotBefore = now + atLeast;
    endpoint.scope?.abort(stopped("plugin disconnected"));
    endpoint.scope = undefined;
    this.#armGrace(endpoint);
    this.#checkpoint.save(endpoint);
    this.#countStates();
  }

  /** Restarts the timer with the current period. The minimum remaining time of `#stop` stays in effect. */
  #armGrace(endpoint: OwnEndpoint): void {
    const { clock, settings } = this.#options;
    endpoint.grace?.cancel();
    const end = Math.max(endpoint.graceFrom + settings().pluginGracePeriod, endpoint.graceNotBefore);
    endpoint.grace = clock.after(end - clock.monotonic(), () => this.#drop(endpoint));
  }

  #drop(endpoint: OwnEndpoint, isDisplaced = false): void {
    const { log, metrics, notify, onChange } = this.#options;
    this.#endpoints.delete(endpoint.name);
    this.#refresh.forget(endpoint);
    this.#checkpoint.drop(endpoint.name);
    metrics.dropped.inc();
    forgetPlugin(metrics, endpoint.name);
    log.warn(
      { errorId: ReporterDisconnected.id, plugin: endpoint.name, reason: endpoint.lostReason },
      "grace period of a disconnected reporter plugin ended, its content is withdrawn",
    );
    if (!isDisplaced)
      notify(
        "ReporterPluginDropped",
        `Reporter plugin ${endpoint.name} did not register again within its grace period: its report is withdrawn`,
      );
    this.#countStates();
    onChange(objectsOf([endpoint]));
  }

  #countStates(): void {
    const { endpoints } = this.#options.metrics;
    const running = [...this.#endpoints.values()].filter(({ stoppedAt }) => stoppedAt === undefined).length;
    endpoints.set({ state: "running" }, running);
    endpoints.set({ state: "stopped" }, this.#endpoints.size - running);
  }
}
