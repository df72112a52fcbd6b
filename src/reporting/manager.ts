import { GetReportContentResponse } from "../gen/reporterplugin/v1alpha1/api.ts";
import {
  type Clock,
  childScope,
  codeOf,
  type HealthResult,
  type Logger,
  messageOf,
  NodekeeperError,
  type Runnable,
  type ScopedSignal,
  stopped,
  type Timer,
} from "../lib/index.ts";
import type { PluginHandler, PluginRegistration } from "../plugins/index.ts";
import type { ReporterStore } from "../state/index.ts";
import { Checkpoint } from "./checkpoint.ts";
import { type CollectMethod, type CollectSettings, collect } from "./collect.ts";
import { encodeContent, type PluginContent, parseContent } from "./content.ts";
import { type Endpoint, endpointStatus, newEndpoint, objectsOf, type ReporterStatus } from "./endpoint.ts";
import type { KindPolicy } from "./kinds.ts";
import type { ReportingMetrics } from "./metrics.ts";
import type { Notify } from "./publish-options.ts";
import { type ContentSource, inTreeSource, type ReporterSource, socketSource } from "./source.ts";

const REPORTER_VERSIONS = ["v1alpha1"];
// Messages of one plugin that come closer together than this are read as one: only the last counts.
const REFRESH_MS = 20;
// A plugin that runs is found by the agent's first scan, and asked at once.
const RETURN_MS = 10_000;

export interface ReporterManagerOptions {
  store: ReporterStore;
  policies: ReadonlyMap<string, KindPolicy>;
  inTree: readonly ReporterSource[];
  settings: () => CollectSettings & { pluginGracePeriod: number };
  /** Longest message taken from a plugin, bytes. */
  maxContentBytes: number;
  /** Told which objects (`kindKey`) may have to be written anew. */
  onChange: (objects: ReadonlySet<string>) => void;
  notify: Notify;
  clock: Clock;
  log: Logger;
  metrics: ReportingMetrics;
}

/**
 * Keeps the content of every reporter plugin: reads those that are registered, keeps what lost ones said for the
 * grace period, checkpoints, and tells which objects change. A plugin behind a socket is a PluginHandler's business.
 */
export class ReporterManager implements Runnable, PluginHandler {
  readonly name = "reporter-manager";
  readonly type = "ReporterPlugin";
  readonly #options: ReporterManagerOptions;
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #checkpoint: Checkpoint;
  readonly #dirty = new Set<Endpoint>();
  #refresh: Timer | undefined;
  #lastRefresh = Number.NEGATIVE_INFINITY;
  #running: ScopedSignal | undefined;
  #startedAt = 0;
  readonly #collecting = new Set<Promise<void>>();

  constructor(options: ReporterManagerOptions) {
    this.#options = options;
    this.#checkpoint = new Checkpoint(options.store, options.clock, options.log, options.metrics);
  }

  /** The names that no plugin behind a socket may take. */
  get inTreeNames(): ReadonlySet<string> {
    return new Set(this.#options.inTree.map((reporter) => reporter.name));
  }

  /** Brings back what all plugins last said. Call once, before `run`, and before anything is published. */
  restore(): void {
    const { clock, log } = this.#options;
    for (const stored of this.#checkpoint.load()) {
      const inTree = this.inTreeNames.has(stored.plugin);
      const endpoint = this.#endpoint(stored.plugin, inTree);
      endpoint.message = stored.content;
      endpoint.updatedAt = stored.updatedAt;
      this.#parse(endpoint);
      // An in-tree plugin answers anew in a moment; until then, too, nothing of it may be withdrawn.
      if (inTree) continue;
      // One that was served until the end gets its whole grace to come back, and time to do so where there is none.
      const wasServed = stored.stoppedAt === undefined;
      const stoppedFor = Math.max(clock.now() - (stored.stoppedAt ?? clock.now()), 0);
      this.#stop(endpoint, stoppedFor, wasServed ? RETURN_MS : 0);
    }
    if (this.#endpoints.size > 0)
      log.info({ plugins: [...this.#endpoints.keys()] }, "restored reporter contents");
  }

  async run(signal: AbortSignal): Promise<void> {
    const scope = childScope(signal);
    this.#running = scope;
    this.#startedAt = this.#options.clock.monotonic();
    for (const reporter of this.#options.inTree) {
      this.#start(this.#endpoint(reporter.name, true), inTreeSource(reporter));
    }
    this.#options.onChange(objectsOf(this.#endpoints.values()));
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (const endpoint of this.#endpoints.values()) {
      endpoint.grace?.cancel();
      endpoint.scope?.abort(signal.reason);
    }
    this.#refresh?.cancel();
    await Promise.allSettled(this.#collecting);
    this.#refreshNow();
    this.#checkpoint.close();
    this.#running = undefined;
    scope.release();
  }

  validate(candidate: Omit<PluginRegistration, "generation">): void {
    if (!candidate.versions.some((version) => REPORTER_VERSIONS.includes(version))) {
      const offered = candidate.versions.join(", ").slice(0, 200) || "none";
      throw new NodekeeperError(
        "unsupported",
        `supported versions of ReporterPlugin: ${REPORTER_VERSIONS.join(", ")}; the plugin offers ${offered}`,
      );
    }
  }

  async register(registration: PluginRegistration): Promise<void> {
    if (!this.#running || this.#running.signal.aborted)
      throw new NodekeeperError("unavailable", "reporting is not running");
    const source = socketSource(registration.endpoint, this.#options.maxContentBytes);
    const endpoint = this.#endpoint(registration.name, false);
    endpoint.registration = registration;
    this.#start(endpoint, source);
    this.#options.log.info(
      { plugin: registration.name, endpoint: registration.endpoint },
      "reporter plugin registered",
    );
  }

  deregister(registration: PluginRegistration, reason: string): void {
    const endpoint = this.#endpoints.get(registration.name);
    if (endpoint?.registration?.generation !== registration.generation) return;
    this.#options.log.warn(
      { plugin: registration.name, reason },
      "reporter plugin lost, its content stays for the grace period",
    );
    endpoint.registration = undefined;
    this.#stop(endpoint, 0);
  }

  /** What each plugin last said, by name. The contents are immutable: a changed one is another object. */
  contents(): ReadonlyMap<string, PluginContent> {
    this.#refreshNow();
    return new Map([...this.#endpoints.values()].map((endpoint) => [endpoint.name, endpoint.content]));
  }

  /** Writes the checkpoint of all that changed. Call before a write that publishes it. Never throws. */
  flush(): void {
    this.#checkpoint.flush();
  }

  /** Applies a changed grace period to plugins that are already lost. */
  settingsChanged(): void {
    for (const endpoint of this.#endpoints.values())
      if (endpoint.stoppedAt !== undefined) this.#armGrace(endpoint);
  }

  status(): ReporterStatus[] {
    return [...this.#endpoints.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).map(endpointStatus);
  }

  /** Fails while reporting does not run, an in-tree plugin does not answer, or the checkpoint can't be written. */
  fetcherHealth(): HealthResult {
    const { clock, settings } = this.#options;
    if (!this.#running) return { ok: false, message: "reporting has not started" };
    const { collectInterval, callTimeout } = settings();
    const patience = 2 * collectInterval + callTimeout;
    const failing = [...this.#endpoints.values()].filter(
      ({ stoppedAt, lastSuccess }) =>
        stoppedAt === undefined && clock.monotonic() - (lastSuccess ?? this.#startedAt) > patience,
    );
    const names = failing
      .map(({ name, lastError }) => `${name} (${lastError ?? "no answer yet"})`)
      .join(", ");
    // Another team's broken plugin must not take the agent out of service: it is named, and the check stays good.
    if (failing.some(({ inTree }) => inTree)) return { ok: false, message: `no content from ${names}` };
    if (this.#checkpoint.lastError)
      return { ok: false, message: `checkpoint: ${this.#checkpoint.lastError}` };
    return { ok: true, message: names ? `no content from ${names}` : `${this.#endpoints.size} plugins` };
  }

  #endpoint(name: string, inTree: boolean): Endpoint {
    const known = this.#endpoints.get(name);
    if (known) return known;
    const endpoint = newEndpoint(name, inTree);
    this.#endpoints.set(name, endpoint);
    return endpoint;
  }

  #start(endpoint: Endpoint, source: ContentSource): void {
    const { clock, settings, metrics } = this.#options;
    endpoint.scope?.abort(stopped("replaced by a newer registration"));
    endpoint.grace?.cancel();
    endpoint.stoppedAt = undefined;
    endpoint.lastError = undefined;
    endpoint.lastSuccess = clock.monotonic();
    this.#checkpointed(endpoint);
    const scope = childScope(this.#running!.signal);
    endpoint.scope = scope;
    const plugin = endpoint.name;
    const collecting = collect(
      {
        source,
        clock,
        settings,
        onContent: (message) => this.#receive(endpoint, scope.signal, message),
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

  #receive(endpoint: Endpoint, signal: AbortSignal, message: Uint8Array): void {
    if (signal.aborted) return;
    const { clock, metrics } = this.#options;
    metrics.messages.inc({ plugin: endpoint.name });
    endpoint.lastSuccess = clock.monotonic();
    endpoint.lastError = undefined;
    if (endpoint.message && Buffer.compare(endpoint.message, message) === 0) return;
    // A copy: the message may be a small piece of a large buffer of the transport.
    endpoint.message = Uint8Array.from(message);
    endpoint.updatedAt = clock.now();
    this.#dirty.add(endpoint);
    this.#scheduleRefresh();
  }

  #failed(endpoint: Endpoint, signal: AbortSignal, method: CollectMethod, error: unknown): void {
    if (signal.aborted) return;
    const { log, metrics } = this.#options;
    const code = codeOf(error);
    metrics.failures.inc({ plugin: endpoint.name, method, code });
    const text = messageOf(error);
    // What comes over a socket names the call already.
    const message = text.startsWith(method) ? text : `${method}: ${text}`;
    if (method === "ListAndWatchReportContent" && code === "unsupported") return;
    const again = endpoint.lastError === message;
    endpoint.lastError = message;
    log[again ? "debug" : "warn"](
      { err: error, plugin: endpoint.name, method },
      "reporter plugin failed, its last content stays",
    );
  }

  #scheduleRefresh(): void {
    if (this.#refresh) return;
    const { clock } = this.#options;
    const wait = Math.max(this.#lastRefresh + REFRESH_MS - clock.monotonic(), 0);
    this.#refresh = clock.after(wait, () => this.#refreshNow());
  }

  #refreshNow(): void {
    this.#refresh?.cancel();
    this.#refresh = undefined;
    if (this.#dirty.size === 0) return;
    this.#lastRefresh = this.#options.clock.monotonic();
    const touched = objectsOf(this.#dirty);
    for (const endpoint of this.#dirty) {
      this.#parse(endpoint);
      this.#checkpointed(endpoint);
    }
    for (const object of objectsOf(this.#dirty)) touched.add(object);
    this.#dirty.clear();
    this.#options.onChange(touched);
  }

  #parse(endpoint: Endpoint): void {
    const { policies, log, metrics } = this.#options;
    const before = endpoint.content;
    try {
      endpoint.content = parseContent(GetReportContentResponse.decode(endpoint.message!), policies, before);
    } catch (error) {
      const message = `message can't be decoded: ${messageOf(error)}`;
      endpoint.content = { fields: before.fields, problems: [{ reason: "json", message }] };
    }
    const { problems } = endpoint.content;
    for (const { reason } of problems) metrics.problems.inc({ plugin: endpoint.name, reason });
    const texts = problems.map((problem) => problem.message);
    if (texts.length > 0 && texts.join() !== before.problems.map((problem) => problem.message).join()) {
      log.warn(
        { plugin: endpoint.name, problems: texts.slice(0, 5), count: texts.length },
        "reporter plugin sent fields that are not taken",
      );
    }
  }

  /** @param stoppedFor how long it has been lost already; its grace is `atLeast` this long; milliseconds */
  #stop(endpoint: Endpoint, stoppedFor: number, atLeast = 0): void {
    const { clock } = this.#options;
    endpoint.scope?.abort(stopped("plugin is gone"));
    endpoint.scope = undefined;
    endpoint.stoppedAt = clock.now() - stoppedFor;
    endpoint.graceFrom = clock.monotonic() - stoppedFor;
    this.#checkpointed(endpoint);
    this.#armGrace(endpoint, atLeast);
    this.#countStates();
  }

  #armGrace(endpoint: Endpoint, atLeast = 0): void {
    const { clock, settings } = this.#options;
    endpoint.grace?.cancel();
    const left = endpoint.graceFrom + Math.max(settings().pluginGracePeriod, atLeast) - clock.monotonic();
    endpoint.grace = clock.after(Math.max(left, 0), () => this.#drop(endpoint));
  }

  #drop(endpoint: Endpoint): void {
    const { log, metrics, notify, onChange } = this.#options;
    this.#endpoints.delete(endpoint.name);
    this.#dirty.delete(endpoint);
    this.#checkpoint.drop(endpoint.name);
    metrics.dropped.inc();
    log.warn(
      { plugin: endpoint.name },
      "grace period of a lost reporter plugin ended, its content is dropped",
    );
    notify(
      "ReporterPluginDropped",
      `Plugin ${endpoint.name} did not come back in its grace period: its report is withdrawn`,
    );
    this.#countStates();
    onChange(objectsOf([endpoint]));
  }

  #checkpointed({ name, message, content, updatedAt, stoppedAt }: Endpoint): void {
    if (!message) return;
    // Of a message with faults, what is published: the good values of earlier ones that stand in for bad fields too.
    const kept = content.problems.length > 0 ? encodeContent(content) : message;
    this.#checkpoint.save({ plugin: name, content: kept, updatedAt: updatedAt ?? 0, stoppedAt });
  }

  #countStates(): void {
    const { endpoints } = this.#options.metrics;
    const running = [...this.#endpoints.values()].filter(({ stoppedAt }) => stoppedAt === undefined).length;
    endpoints.set({ state: "running" }, running);
    endpoints.set({ state: "stopped" }, this.#endpoints.size - running);
  }
}
