import type { NodeTaint } from "@nodekeeper/api/decide";
import { TaintsMissing } from "@nodekeeper/api/errors";
import { aboutNode } from "@nodekeeper/core/kube";
import { formatDuration, RecentMap } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { LiveTaint } from "../parts.ts";
import { LeftTaints } from "./left-taints.ts";
import { changedTaints, newTaints } from "./node-taints.ts";
import type { TaintLoss } from "./taint-losses.ts";

/** Kinds of marks about taints. */
export type TaintChange = "taintAdded" | "taintChanged" | "taintRemoved";

export interface TaintReportsOptions {
  context: Pick<EvictionContext, "nodeName" | "events" | "policy" | "log">;
  /** Called with a message for each taint that was added, restored, changed or removed. */
  onChange: (message: string, kind: TaintChange) => void;
}

// Bounds the reasons that are kept, because some taints are never removed.
const MOST_REASONS = 256;

/** Reports changes of the agent's taints of the Node as Events, history entries of the node, marks and log lines. */
export class TaintReports {
  readonly #options: TaintReportsOptions;
  /** The last reason of each taint, by "key:effect". */
  readonly #reasons = new RecentMap<string, string>(MOST_REASONS);
  /** Taints that another client removed or changed, until the agent's next write, by "key:effect". */
  readonly #losses = new Map<string, TaintLoss>();
  readonly #left: LeftTaints;

  constructor(options: TaintReportsOptions) {
    this.#options = options;
    const { log, nodeName } = options.context;
    this.#left = new LeftTaints({
      log,
      object: { node: nodeName },
      command: (taints) => `kubectl taint node ${nodeName} ${taints.map((taint) => `${taint}-`).join(" ")}`,
    });
  }

  /** Records why taints are desired. Dry run has ended: the next dry run logs the remaining taints again. */
  desired(taints: readonly NodeTaint[]): void {
    this.#left.reset();
    for (const { key, effect, why } of taints) this.#reasons.set(`${key}:${effect}`, why);
  }

  /** Reports that another client removed or changed a taint of the agent. */
  lost(loss: TaintLoss): void {
    const { onChange, context } = this.#options;
    const { log, nodeName } = context;
    const { taint, what, by } = loss;
    this.#losses.set(taint, loss);
    log.warn(
      { errorId: TaintsMissing.id, node: nodeName, taint, what, by },
      "another client changed the agent's taint",
    );
    onChange(`taint ${taint} ${what} by ${by}`, what === "removed" ? "taintRemoved" : "taintChanged");
  }

  /** Warns of the agent's taints that stay because nothing is written in dry run. Once for the same taints. */
  left(own: ReadonlySet<string> = new Set()): void {
    this.#left.warn(own);
  }

  /** Reports a write by the agent. */
  wrote(before: readonly LiveTaint[], after: readonly LiveTaint[]): void {
    const { log, nodeName } = this.#options.context;
    const added = newTaints(before, after);
    const removed = newTaints(after, before);
    const restored = changedTaints(before, after);
    if (added.length + removed.length + restored.length > 0)
      log.info({ node: nodeName, added, removed, restored }, "node taints changed");
    for (const taint of added) this.#added(taint);
    for (const taint of restored) this.#restored(taint);
    for (const taint of removed) this.#removed(taint);
    this.#losses.clear();
  }

  #added(taint: string): void {
    const { onChange, context } = this.#options;
    const { events, policy } = context;
    const loss = this.#losses.get(taint);
    const why = this.#reasons.get(taint);
    const verb = loss?.what === "removed" ? `restored after its removal by ${loss.by}` : "added";
    const message = `Taint ${taint} ${verb}${why === undefined ? "" : `: ${why}`}`;
    const transition = formatDuration(policy().conditionTransitionPeriodMs);
    const lasting = `. It is removed ${transition} after the condition clears.`;
    events.record({
      ...{ type: "Warning", reason: "NodePressureTainted" },
      ...{ message: why === undefined ? `${message}.` : message + lasting, regarding: this.#node },
    });
    onChange(lowered(message), "taintAdded");
  }

  #restored(taint: string): void {
    const loss = this.#losses.get(taint);
    const change = loss === undefined ? "" : ` after its change by ${loss.by}`;
    this.#options.onChange(`taint ${taint} restored${change}: its value was removed`, "taintChanged");
  }

  #removed(taint: string): void {
    const { context, onChange } = this.#options;
    const why = this.#reasons.get(taint);
    const message = `Taint ${taint} removed: no longer reported${why === undefined ? "" : `. Last: ${why}`}`;
    context.events.record({
      ...{ type: "Normal", reason: "NodePressureUntainted" },
      ...{ message: `${message}.`, regarding: this.#node },
    });
    this.#reasons.delete(taint);
    onChange(lowered(message), "taintRemoved");
  }

  get #node() {
    return aboutNode(this.#options.context.nodeName);
  }
}

function lowered(message: string): string {
  return `${message.charAt(0).toLowerCase()}${message.slice(1)}`;
}
