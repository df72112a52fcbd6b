import type { AgentLife } from "../world/history.ts";
import { eachWrite } from "./acts.ts";
import type { Rule } from "./rule.ts";

// The supervisor starts an agent again within 5 s. One that has handed over waits for as long before its turn.
const LONGEST_GAP_MS = 15_000;

export const agents: readonly Rule[] = [
  {
    promise: "At no time do two agents have the state directory, and only the one that has it writes.",
    watch: (world) => {
      const look = eachWrite(({ history }, { at, sender, method, path, isLate }) => {
        // It may have been killed when it had been answered.
        const active = history.lives.some((life) => life.process === sender && isActive(life, at));
        if (isLate || active) return undefined;
        return `${method} ${path} at ${at} ms of ${sender.name}`;
      })(world);
      return () => {
        const active = world.history.lives.filter((life) => isActive(life));
        return active.length > 1 ? active.map(({ process }) => process.name).join(" and ") : look();
      };
    },
  },
  {
    promise: "After an agent has ended, another one has the state directory within 15 seconds.",
    watch: ({ agent, history, machine, operator }) => {
      let since: number | undefined;
      return () => {
        const { now } = machine.scheduler;
        // No agent starts with an invalid file.
        const isDue = agent.isWanted && operator.written !== undefined;
        if (!isDue || history.lives.some((life) => isActive(life))) since = undefined;
        else since ??= now;
        if (since === undefined || now - since < LONGEST_GAP_MS) return undefined;
        return `none since ${(since / 1_000).toFixed(3)} s`;
      };
    },
  },
];

/** Returns whether an agent has the state directory, or had it at a time. */
function isActive({ activeSince, endedAt }: AgentLife, at = Number.POSITIVE_INFINITY): boolean {
  return activeSince !== undefined && activeSince <= at && (endedAt ?? Number.POSITIVE_INFINITY) >= at;
}
