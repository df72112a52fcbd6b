import { KubeletResourcesOmitted, PodResourcesUnreadable } from "@nodekeeper/api/errors";
import type { InTreeReporterName } from "@nodekeeper/api/settings";
import {
  FieldType,
  type GetReportContentResponse,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import {
  childScope,
  codeOf,
  type Logger,
  SharedWork,
  WakeableSleep,
  withDeadline,
} from "@nodekeeper/core/lib";
import { customNodeResource, type ReporterSource } from "../../reporting/index.ts";
import { KubeletReader, type KubeletReaderOptions, type KubeletReading } from "./kubelet-reader.ts";
import type { KubeletReporterMetrics } from "./metrics.ts";

/** Plugin name, the same as that of katalyst's kubelet reporter. */
export const KUBELET_REPORTER_NAME = "kubelet-reporter-plugin" satisfies InTreeReporterName;

export interface KubeletReporterOptions extends KubeletReaderOptions {
  log: Logger;
  metrics: KubeletReporterMetrics;
}

/** Timeout of reading the kubelet, and of the wait for the runtime's first list of pods before that, milliseconds. */
export const TIMEOUT_MS = 10_000;
/** Interval of readings after a failure, milliseconds. */
export const RETRY_INTERVAL_MS = 5_000;

interface Content {
  readonly zones: string;
  readonly policy: string | undefined;
}

/**
 * Reports the machine's sockets, NUMA nodes and devices, their allocations, and the kubelet's topology policy as status
 * of the CustomNodeResource. While the kubelet is unavailable, nothing is reported, so that the last content is kept.
 * The last content is also kept while a kubelet that has just started does not list its pods yet.
 */
export class KubeletReporter implements ReporterSource {
  readonly name = KUBELET_REPORTER_NAME;
  readonly #options: KubeletReporterOptions;
  readonly #reader: KubeletReader;
  readonly #readings = new SharedWork((signal) => this.#read(signal));
  readonly #encoder = new TextEncoder();
  #watches = 0;
  #isUnavailable = false;
  #isComplete = true;
  #last: { content: Content; at: number } | undefined;
  #lastGiven: Content | undefined;
  #lastProblems = "";

  constructor(options: KubeletReporterOptions) {
    this.#options = options;
    this.#reader = new KubeletReader(options);
  }

  /**
   * Reads the kubelet. While the content is watched, returns the last reading. Throws `unavailable`, `deadline`,
   * `exhausted` or `corrupt` if the kubelet can't be read.
   */
  async getReportContent(signal: AbortSignal): Promise<GetReportContentResponse> {
    const { clock, settings } = this.#options;
    const isRecent = this.#last && clock.monotonic() - this.#last.at < settings.resyncInterval;
    // A watch reads after each event, so another reading would find no change.
    if (this.#last && isRecent && this.#watches > 0 && !this.#isUnavailable) {
      signal.throwIfAborted();
      return this.#response(this.#last.content);
    }
    return this.#response(await this.#readings.join(signal));
  }

  /**
   * Yields the content immediately and after each change. Reads the kubelet periodically, and shortly after a pod
   * changed or a driver's devices became known. Throws the signal's reason when it aborts.
   */
  async *listAndWatch(signal: AbortSignal): AsyncIterable<GetReportContentResponse> {
    const { clock, settings } = this.#options;
    using scope = childScope(signal);
    const change = new WakeableSleep();
    const following = this.#follow(change, scope.signal);
    const stopListening = this.#options.devices.onKnown(() => change.wake());
    this.#watches++;
    try {
      let last: Content | undefined;
      for (;;) {
        change.clear();
        const content = await this.#readings.fresh(signal).catch(() => undefined);
        signal.throwIfAborted();
        // Polls also publish content, so both the last content of this watch and the last published one are compared.
        if (content && !(sameContent(content, last) && sameContent(content, this.#lastGiven))) {
          last = content;
          yield this.#response(content);
        }
        const waitMs = content && this.#isComplete ? settings.resyncInterval : RETRY_INTERVAL_MS;
        // A change of a pod causes several events.
        if (await change.wait(clock, waitMs, signal)) await clock.sleep(settings.debounce, signal);
      }
    } finally {
      this.#watches--;
      stopListening();
      scope.abort();
      await following;
    }
  }

  async #follow(change: WakeableSleep, signal: AbortSignal): Promise<void> {
    try {
      for await (const _ of this.#options.pods.changes(signal)) change.wake();
    } catch (error) {
      if (signal.aborted) return;
      this.#options.log.warn(
        { errorId: PodResourcesUnreadable.id, err: error },
        "failed to follow pod events, querying the kubelet periodically",
      );
    }
  }

  async #read(signal: AbortSignal): Promise<Content> {
    const { clock, log, metrics, pods, settings } = this.#options;
    const what = `kubelet at ${settings.podResourcesSocket}`;
    try {
      await withDeadline(
        clock,
        { ms: TIMEOUT_MS, name: "first list of pods from the container runtime" },
        signal,
        (each) => pods.listed(each),
      );
      const reading = await withDeadline(clock, { ms: TIMEOUT_MS, name: what }, signal, (each) =>
        this.#reader.read(each),
      );
      metrics.readings.inc({ result: reading.isComplete ? "ok" : "incomplete" });
      metrics.unknownPods.set(reading.unknownPods.length);
      if (this.#isUnavailable) log.info({}, "kubelet's PodResources can be read again");
      this.#isUnavailable = false;
      this.#logChange(reading);
      this.#isComplete = reading.isComplete;
      const zones = JSON.stringify(reading.zones);
      // A kubelet that has just started does not list its pods yet. Their allocations stay published.
      const content =
        this.#last && !reading.isComplete ? this.#last.content : { zones, policy: reading.policy };
      this.#last = { content, at: clock.monotonic() };
      return content;
    } catch (error) {
      // The caller aborted. This is not an error of the kubelet.
      if (signal.aborted) throw error;
      metrics.readings.inc({ result: codeOf(error) });
      if (!this.#isUnavailable)
        log.warn(
          { errorId: PodResourcesUnreadable.id, err: error },
          "failed to read the kubelet's PodResources, the last content stays published",
        );
      this.#isUnavailable = true;
      throw error;
    }
  }

  // Logged only when problems start, change or end, because they last for many readings.
  #logChange({ problems }: KubeletReading): void {
    const current = problems.join("; ");
    if (current === this.#lastProblems) return;
    this.#lastProblems = current;
    const { log } = this.#options;
    if (current === "") log.info({}, "all resources of the kubelet are reported again");
    else
      log.warn(
        { errorId: KubeletResourcesOmitted.id, problems },
        "some resources of the kubelet are not reported",
      );
  }

  #response(content: Content): GetReportContentResponse {
    const { zones, policy } = content;
    this.#lastGiven = content;
    const field = [this.#field("TopologyZone", zones)];
    if (policy !== undefined) field.push(this.#field("TopologyPolicy", JSON.stringify(policy)));
    return { content: [{ groupVersionKind: { ...customNodeResource }, field }] };
  }

  #field(fieldName: string, json: string) {
    return { fieldType: FieldType.Status, fieldName, value: this.#encoder.encode(json) };
  }
}

function sameContent(a: Content, b: Content | undefined): boolean {
  return a.zones === b?.zones && a.policy === b.policy;
}
