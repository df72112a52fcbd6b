import type { CustomNodeResourceTaint } from "@nodekeeper/api/decide";
import {
  FieldType,
  type GetReportContentResponse,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { LatestValue } from "@nodekeeper/core/lib";
import { customNodeResource, type ReporterSource } from "../../reporting/index.ts";
import type { EvictionContext } from "../context.ts";
import { LeftTaints } from "./left-taints.ts";
import { taintTime } from "./node-taints.ts";

/**
 * Reports conditions as taints of the CustomNodeResource. It is an ordinary reporter: its taints are merged with those
 * of reporter plugins, taints of other clients are preserved, and the last content survives a restart.
 */
export class ConditionReporter implements ReporterSource {
  readonly name = "eviction-conditions";
  // Empty once they no longer stay.
  #stored: readonly CustomNodeResourceTaint[];
  #content: GetReportContentResponse;
  #leavesTaints: boolean;
  readonly #left: LeftTaints;
  readonly #latest = new LatestValue<GetReportContentResponse>();

  /**
   * @param stored the taints of the stored eviction state, which stay until the first complete round
   * @param isSuspended whether the reporter starts suspended
   */
  constructor(
    stored: readonly CustomNodeResourceTaint[],
    isSuspended: boolean,
    { log, nodeName }: Pick<EvictionContext, "log" | "nodeName">,
  ) {
    this.#left = new LeftTaints({
      log,
      object: { customNodeResource: nodeName },
      command: () => `kubectl edit customnoderesource ${nodeName}, and remove them from spec.taints`,
    });
    this.#stored = isSuspended ? [] : stored;
    this.#leavesTaints = isSuspended;
    this.#content = contentOf(this.#stored);
    this.#latest.set(this.#content);
  }

  /** Like `Tainter.setDesired`, for the CustomNodeResource. */
  setDesired(taints: readonly CustomNodeResourceTaint[], isComplete: boolean): void {
    this.#leavesTaints &&= !isComplete;
    this.#left.reset();
    if (isComplete) this.#stored = [];
    this.#report(contentOf(union(taints, this.#stored)));
  }

  /** Like `Tainter.suspend`, for the CustomNodeResource: reports nothing. */
  suspend(): void {
    this.#leavesTaints = true;
    this.#stored = [];
    this.#report(contentOf([]));
  }

  /**
   * Whether taints that the agent added earlier stay on the CustomNodeResource although they are not reported: while
   * suspended, and after that until the first complete round.
   */
  get leavesTaints(): boolean {
    return this.#leavesTaints;
  }

  /** Warns of the agent's taints that stay while the reporter is suspended. Once for the same taints. */
  left(taints: readonly Readonly<Record<string, unknown>>[]): void {
    this.#left.warn(taints.map(({ key, effect, qosLevel }) => `${key}:${effect} for ${qosLevel}`));
  }

  /** While suspended, content of an earlier agent process is not published again. */
  get startsEmpty(): boolean {
    return this.#leavesTaints;
  }

  #report(content: GetReportContentResponse): void {
    if (JSON.stringify(textsOf(content)) === JSON.stringify(textsOf(this.#content))) return;
    this.#content = content;
    this.#latest.set(content);
  }

  async getReportContent(signal: AbortSignal): Promise<GetReportContentResponse> {
    signal.throwIfAborted();
    return this.#content;
  }

  async *listAndWatch(signal: AbortSignal): AsyncIterable<GetReportContentResponse> {
    for (let seen = 0; ; ) {
      const { number, value } = await this.#latest.after(seen, signal);
      seen = number;
      yield value;
    }
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function union(
  taints: readonly CustomNodeResourceTaint[],
  stored: readonly CustomNodeResourceTaint[],
): CustomNodeResourceTaint[] {
  const idOf = ({ key, effect, qosLevel }: CustomNodeResourceTaint) => `${qosLevel} ${key}:${effect}`;
  const ids = new Set(taints.map(idOf));
  return [...taints, ...stored.filter((taint) => !ids.has(idOf(taint)))];
}

// Omits the field if there are no taints: an empty list would make the agent its owner and conflict with other clients.
function contentOf(taints: readonly CustomNodeResourceTaint[]): GetReportContentResponse {
  if (taints.length === 0) return { content: [] };
  const list = taints.map(({ key, effect, qosLevel, since }) => ({
    key,
    effect,
    qosLevel,
    timeAdded: taintTime(since),
  }));
  const value = encoder.encode(JSON.stringify(list));
  const field = [{ fieldType: FieldType.Spec, fieldName: "Taints", value }];
  return { content: [{ groupVersionKind: { ...customNodeResource }, field }] };
}

function textsOf({ content }: GetReportContentResponse): string[] {
  return content.flatMap(({ field }) => field.map(({ value }) => decoder.decode(value)));
}
