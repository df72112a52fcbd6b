import { createHash } from "node:crypto";
import type { EvictionOutcome } from "@nodekeeper/api/decide";
import type { EvictionStep, RoundRecord } from "@nodekeeper/api/records";
import type { Span } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import type { EvictionId } from "./archive-record.ts";
import { type DeclaredAttributes, podAttributes } from "./attributes.ts";
import { attributesOf, nanosOf } from "./otlp-values.ts";

/** What is recorded about an eviction that has ended. Times are in milliseconds since the epoch. */
export interface EndedEviction {
  eviction: EvictionId;
  outcome: EvictionOutcome;
  /** The time of the round that recorded the outcome. */
  endedBy: number;
  /** The round that selected the pod. Undefined if it is no longer kept. */
  selection: RoundRecord | undefined;
  steps: readonly EvictionStep[];
}

const INTERNAL = 1;
const OK = 1;
const ERROR = 2;
const NONE = new Uint8Array();

/** Returns the ID of an eviction's trace: always the same. */
export function traceIdOf({ uid, selectedAt }: EvictionId): Uint8Array {
  return digestOf(`trace ${uid} ${selectedAt}`).subarray(0, 16);
}

/** Returns the ID of a span of an eviction's trace: always the same. @param name empty for the whole eviction */
export function spanIdOf({ uid, selectedAt }: EvictionId, name: string): Uint8Array {
  return digestOf(`span ${uid} ${selectedAt} ${name}`).subarray(0, 8);
}

/**
 * Returns the trace of an eviction: a span from the time when the threshold was met until the eviction ended, with its
 * steps as events, and one span for each phase that is recorded: `threshold met`, `send`, `terminate`. Pure.
 */
export function evictionTrace(ended: EndedEviction): Span[] {
  const { eviction, outcome, endedBy, selection, steps } = ended;
  const { uid, selectedAt } = eviction;
  const { acceptedAt, endedAt = endedBy, result, message } = outcome;
  const victim = selection?.decision.victims.find((one) => one.uid === uid);
  const met = selection?.decision.thresholds.find(
    ({ plugin, scope }) => plugin === victim?.plugin && scope === victim.scope,
  );
  const since = met?.since ?? selectedAt;
  const pod = victim ?? { uid, namespace: outcome.namespace ?? "", name: outcome.name ?? "" };
  const phase = (name: string, from: number | undefined, to: number | undefined) =>
    from === undefined || to === undefined ? [] : [spanOf(eviction, name, from, to)];
  const whole: Span = {
    ...spanOf(eviction, "", since, endedAt),
    name: "evict pod",
    parentSpanId: NONE,
    attributes: attributesOf({
      ...podAttributes(pod, selection?.input.pods.find((one) => one.uid === uid) ?? null),
      "nodekeeper.plugin": victim?.plugin,
      "nodekeeper.scope": victim?.scope,
      "nodekeeper.round": selection?.id,
      "nodekeeper.result": result,
      "nodekeeper.message": victim?.reason,
    } satisfies DeclaredAttributes),
    events: steps
      .filter(({ at }) => at >= selectedAt && at <= endedBy)
      .map(({ at, message: name }) => ({ timeUnixNano: nanosOf(at), name, attributes: [] })),
    status: { code: result === "terminated" ? OK : ERROR, message: result === "terminated" ? "" : message },
  };
  return [
    whole,
    ...phase("threshold met", met?.since, selectedAt),
    ...phase("send", selectedAt, acceptedAt),
    ...phase("terminate", acceptedAt, acceptedAt === undefined ? undefined : endedAt),
  ];
}

// Returns a span. It never starts after its end, even if the wall clock was set back in between.
function spanOf(eviction: EvictionId, name: string, from: number, to: number): Span {
  return {
    traceId: traceIdOf(eviction),
    spanId: spanIdOf(eviction, name),
    parentSpanId: spanIdOf(eviction, ""),
    name,
    kind: INTERNAL,
    startTimeUnixNano: nanosOf(Math.min(from, to)),
    endTimeUnixNano: nanosOf(to),
    attributes: [],
    events: [],
    status: undefined,
  };
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
