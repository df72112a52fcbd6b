import {
  conditionChanges,
  conditionChangeText,
  type DecideInput,
  type Decision,
  type EvictionState,
  isFullDryRun,
  type Notification,
} from "@nodekeeper/api/decide";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { NewMark } from "../../state/index.ts";
import type { BlockedEvictions } from "../blocked-evictions.ts";
import type { Tainter } from "../parts.ts";
import { DecisionLog } from "../records/decision-log.ts";
import { HeldLog } from "../records/held-log.ts";
import type { PodHistory } from "../records/pod-history.ts";
import { TaintGate } from "./taint-gate.ts";

export interface DecisionEffectsOptions {
  tainter: Tainter;
  /** Reports which evictions are not possible. */
  blocked: Pick<BlockedEvictions, "note">;
  /** Notify pods of soft evictions. */
  notifiers: readonly { notify(notifications: readonly Notification[]): void }[];
  history: Pick<PodHistory, "addNodeEvent">;
  clock: Clock;
  log: Logger;
}

/** The effects of a decision other than evictions: log lines, taints, the Node condition, notifications. */
export class DecisionEffects {
  readonly #options: DecisionEffectsOptions;
  readonly #gate: TaintGate;
  readonly #log: DecisionLog;
  readonly #held: HeldLog;

  constructor(options: DecisionEffectsOptions) {
    this.#options = options;
    this.#gate = new TaintGate(options.clock);
    this.#log = new DecisionLog(options.log);
    this.#held = new HeldLog(options.log);
  }

  /** @param stored the state before the start; undefined if there is none */
  start(stored: EvictionState | undefined): void {
    this.#gate.start(stored);
  }

  /** Logs a decision before the agent acts on it. Returns its marks. */
  report(id: number, input: DecideInput, decision: Decision): NewMark[] {
    const { history, clock } = this.#options;
    const changes = conditionChanges(input.state.conditions, decision.state.conditions);
    const made = [...this.#log.write(id, decision), ...this.#log.writeConditions(id, changes)];
    for (const change of changes) history.addNodeEvent(conditionChangeText(change), change.condition.plugin);
    this.#held.note(decision.thresholds, clock.now());
    return made.map((mark) => ({ ...mark, at: input.now }));
  }

  /**
   * Applies the taints and the Node condition of a decision, and notifies pods. Full dry run changes no taints.
   * @param forbidden why the agent can't evict any pod; undefined if it can
   */
  apply(input: DecideInput, decision: Decision, forbidden: string | undefined): void {
    const { tainter, blocked, notifiers } = this.#options;
    const { thresholds, taints, notifications } = decision;
    const isComplete = this.#gate.isOpen(input);
    if (isFullDryRun(input.policy)) {
      tainter.suspend();
      // When dry run ends, taints are removed as after a start.
      this.#gate.start(decision.state);
    } else tainter.setDesired(taints, isComplete);
    blocked.note({ thresholds, policy: input.policy, forbidden, isComplete, now: input.now });
    for (const notifier of notifiers) notifier.notify(notifications);
  }
}
