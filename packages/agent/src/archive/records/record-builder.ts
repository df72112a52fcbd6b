import { setImmediate } from "node:timers/promises";
import { compareOutcomes, type EvictionOutcome, isFinal, type PodReference } from "@nodekeeper/api/decide";
import type { EvictionStep, NodePod, RoundRecord } from "@nodekeeper/api/records";
import { counted, endingText } from "@nodekeeper/api/wording";
import type { Span } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import { readNodePod } from "../../eviction/index.ts";
import type { ArchiveGap, Mark, QueuedRecord, StoredNodeEvent, StoredNodePod } from "../../state/index.ts";
import type { ArchiveRecord, EvictionId, RecordContent } from "./archive-record.ts";
import { type DeclaredAttributes, podAttributes } from "./attributes.ts";
import { evictionTrace } from "./eviction-trace.ts";
import { RoundRecords } from "./round-records.ts";

/** Reads the rows that queued records refer to. */
export interface ArchiveSources {
  /** Undefined if it is no longer kept, or can't be read. */
  round(id: number): RoundRecord | undefined;
  /** Undefined if it is no longer kept. */
  pod(uid: string): StoredNodePod | undefined;
  events(uid: string): StoredNodeEvent[];
  steps(uid: string): EvictionStep[];
  /** Returns the round that selected a pod. Undefined if it is no longer kept. */
  selection(eviction: EvictionId): RoundRecord | undefined;
  /** Undefined if no round concerns it. */
  podOfUid(uid: string): PodReference | undefined;
}

/** A ResourceClaim as exported. */
interface ArchivedClaim extends PodReference {
  driver: string;
  state: "prepared" | "unprepared";
  pods: PodReference[];
  /** "<pool>/<device>" */
  devices: string[];
  updatedAt: number;
}

/** Builds the exported records of queued ones. */
export class RecordBuilder {
  readonly #sources: ArchiveSources;
  readonly #hasTraces: boolean;
  #rounds = new RoundRecords();

  /** @param hasTraces whether evictions have traces */
  constructor(sources: ArchiveSources, hasTraces: boolean) {
    this.#sources = sources;
    this.#hasTraces = hasTraces;
  }

  /** Resets the state kept between rounds. Must be called before rows are built again. */
  restart(): void {
    this.#rounds = new RoundRecords();
  }

  /**
   * Returns the records of a queued row. Empty if everything in a round was exported before. Undefined if the row's
   * data is no longer kept or can't be read. Must be called in queue order. Yields to the event loop after each decoded
   * round; decoding one with a thousand pods takes a few milliseconds.
   */
  async build(queued: QueuedRecord): Promise<ArchiveRecord[] | undefined> {
    const { id: sequence, record, kind, key } = queued;
    const whole = (built: RecordContent, suffix = ""): ArchiveRecord => ({
      ...built,
      body: JSON.stringify(built.body),
      id: suffix === "" ? record : `${record}-${suffix}`,
      attributes: { ...built.attributes, "nodekeeper.record.sequence": sequence },
    });
    if (kind === "round") {
      const round = this.#sources.round(Number(key));
      await setImmediate();
      if (!round) return undefined;
      const records: ArchiveRecord[] = [];
      for (const { record: built, suffix } of this.#rounds.of(round))
        records.push(await this.#traced(whole(built, suffix), suffix, round));
      return records;
    }
    const built = this.#one(queued);
    return built && [whole(built)];
  }

  // Adds the traces of the pod's evictions that ended in the round. If the round selected the pod again, the record
  // itself is about the new eviction.
  async #traced(record: ArchiveRecord, uid: string, round: RoundRecord): Promise<ArchiveRecord> {
    if (!this.#hasTraces) return record;
    const outcomes = round.input.outcomes.filter((one) => one.uid === uid && isFinal(one));
    const bySelection = new Map(
      outcomes.sort(compareOutcomes).map((outcome) => [outcome.selectedAt, outcome] as const),
    );
    const traces: Span[][] = [];
    for (const [selectedAt, outcome] of bySelection) {
      if (selectedAt === undefined) continue;
      traces.push(this.#traceOf({ uid, selectedAt }, outcome, round.input.now));
      await setImmediate();
    }
    return traces.length === 0 ? record : { ...record, traces };
  }

  #traceOf(eviction: EvictionId, outcome: EvictionOutcome, endedBy: number): Span[] {
    const selection = this.#sources.selection(eviction);
    const steps = this.#sources.steps(eviction.uid);
    return evictionTrace({ eviction, outcome, endedBy, selection, steps });
  }

  #one({ kind, key, at, body: text }: QueuedRecord): RecordContent | undefined {
    const body = text === null ? undefined : JSON.parse(text);
    switch (kind) {
      case "pod":
        return this.#pod(key, at);
      case "step":
        return this.#step(body);
      case "claim":
        return claimRecord(body);
      case "mark":
        return markRecord(body);
      default:
        return gapRecord(body, at);
    }
  }

  #pod(uid: string, at: number): RecordContent | undefined {
    const stored = this.#sources.pod(uid);
    const pod = stored && readNodePod(stored);
    if (!pod) return undefined;
    const { namespace, name, ending } = pod;
    const reason = ending.reason || ending.disruption?.reason;
    return {
      event: "nodekeeper.pod.ended",
      at,
      severity: "info",
      message: `${namespace}/${name}: ${endOf(pod)}`,
      body: { kind: "pod", pod, events: this.#sources.events(uid), steps: this.#sources.steps(uid) },
      attributes: {
        ...podAttributes(pod, pod.pod),
        "nodekeeper.reason": reason || undefined,
      } satisfies DeclaredAttributes,
    };
  }

  #step(body: EvictionStep): RecordContent {
    const { uid, at, message } = body;
    const pod = this.#sources.podOfUid(uid);
    const attributes: DeclaredAttributes = pod ? podAttributes(pod) : { "k8s.pod.uid": uid };
    const title = pod ? `${pod.namespace}/${pod.name}: ${message}` : message;
    return { event: "nodekeeper.eviction.step", at, severity: "info", message: title, body, attributes };
  }
}

// Describes the end of a pod without stating who terminated it: the decisions that show this may be exported later.
function endOf(pod: NodePod): string {
  return endingText(pod, { by: "unknown", why: "" });
}

function claimRecord(body: ArchivedClaim): RecordContent {
  const { driver, uid, namespace, name, state, pods, devices, updatedAt } = body;
  const [pod] = pods;
  return {
    event: "nodekeeper.claim",
    at: updatedAt,
    severity: "info",
    message: `claim ${namespace}/${name} ${state} by ${driver}: ${devices.join(", ")}`,
    body,
    attributes: {
      ...(pods.length === 1 && pod ? podAttributes(pod) : { "k8s.namespace.name": namespace }),
      "nodekeeper.driver": driver,
      "nodekeeper.claim.uid": uid,
      "nodekeeper.claim.name": name,
      "nodekeeper.result": state,
    } satisfies DeclaredAttributes,
  };
}

function markRecord(stored: Mark): RecordContent {
  // Absent members are stored as null.
  const entries = Object.entries(stored).filter(([, value]) => value !== null);
  const body = Object.fromEntries(entries) as unknown as Mark;
  const { at, kind, title, plugin, round } = body;
  return {
    event: "nodekeeper.mark",
    at,
    severity: kind === "agentStartedAfterKill" ? "warn" : "info",
    message: title,
    body,
    attributes: {
      "nodekeeper.plugin": plugin,
      "nodekeeper.round": round,
      "nodekeeper.result": kind,
    } satisfies DeclaredAttributes,
  };
}

function gapRecord(body: Omit<ArchiveGap, "records"> & Partial<ArchiveGap>, at: number): RecordContent {
  const { from, to, why, records } = body;
  const span = `between ${new Date(from).toISOString()} and ${new Date(to).toISOString()}`;
  return {
    event: "nodekeeper.gap",
    at,
    severity: "warn",
    message: `${records === undefined ? "records" : counted(records, "record")} missing ${span}: ${why}`,
    body,
    attributes: { "nodekeeper.gap.records": records } satisfies DeclaredAttributes,
  };
}
