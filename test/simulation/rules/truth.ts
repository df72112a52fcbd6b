import { falsehoods, type LostEvidence, type Statements } from "../../support/endings/claims.ts";
import type { PodTruth } from "../world/pod-truths.ts";
import { statementsAbout } from "../world/statements.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

export const truth: readonly Rule[] = [
  {
    promise: "What is stated about a pod is true; that it is not known is stated only if evidence was lost.",
    atRest: async (world) => {
      world.api.pods.look();
      const settled = [...world.api.pods.all.values()].filter((pod) => isSettled(world, pod));
      const stated = await statementsAbout(world, settled);
      // The world goes on while the agent answers.
      world.api.pods.look();
      return stated.flatMap(({ pod, said }) => {
        const lost = lostAbout(world, pod);
        if (!isSettled(world, pod) || isKnownDefect(said, lost)) return [];
        const found = falsehoods(said, pod.endedBy ?? "alive", lost);
        return found.length > 0 ? [`${pod.name}: ${found.join("; ")}. It says: ${said.verdict}`] : [];
      });
    },
  },
];

// After a pod is gone, the next round of the agent records how its eviction ended.
const UNTIL_RECORDED_MS = 15_000;

/** Returns whether a pod runs on, or has been gone for long enough. */
function isSettled({ machine, history }: World, { uid, endedBy, goneAt }: PodTruth): boolean {
  if (goneAt !== undefined) return machine.scheduler.now - goneAt > UNTIL_RECORDED_MS;
  return endedBy === undefined && !history.namings.some((naming) => naming.uid === uid);
}

/**
 * Known defects, of pods about which a request or its response was lost, or during whose eviction the agent was killed.
 *
 * 1. The state of the boot is written before the round that it follows from. A kill between the two loses the round with
 *    its outcomes, and the state no longer has their evictions: they are stated to be open for ever.
 * 2. A request that the agent gave up can still arrive, also after a restart. The eviction is then withdrawn or has
 *    failed, and the page only says that a request was sent before.
 */
function isKnownDefect({ verdict }: Statements, { response }: LostEvidence): boolean {
  return (
    response && /no outcome of its eviction is recorded|a request to evict it was sent before/.test(verdict)
  );
}

// The agent gives a request to the API server up after this.
const REQUEST_TIMEOUT_MS = 10_000;

/** Returns which evidence about a pod cannot have reached the agent, or was not kept. */
function lostAbout({ history, plan, machine }: World, pod: PodTruth): LostEvidence {
  const { uid, name, endedAt, goneAt = endedAt } = pod;
  const decidedAt = history.namings.find((naming) => naming.uid === uid)?.at ?? endedAt;
  const recordedAt = goneAt + UNTIL_RECORDED_MS;
  const isDead = (from: number, to: number) =>
    history.lives.some((life, at) => {
      const next = history.lives[at + 1];
      return life.endedAt !== undefined && life.endedAt <= to && (next?.startedAt ?? to) >= from;
    });
  const isLost = history.lost.some(({ url }) => url.includes(`/pods/${name}`));
  const isLate = plan.faults.slow > 0 && plan.faults.slowestMs > REQUEST_TIMEOUT_MS;
  return {
    response: isLost || isLate || isDead(decidedAt, recordedAt),
    records: isDead(endedAt, recordedAt) || machine.wallOffset !== 0 || wasPerhapsUnseen(pod, plan),
  };
}

// A watch that the API server refuses or ends is opened again after at most this, and then after one slow response.
const LONGEST_BLINDNESS_MS = 30_000;

/** Returns whether a pod may have come and gone while the agent's watch of pods was not open. */
function wasPerhapsUnseen({ createdAt, goneAt, endedAt }: PodTruth, { faults }: World["plan"]): boolean {
  const isBlinded =
    Number.isFinite(faults.cutWatches) || Object.values(faults.refusals).some((share) => share > 0);
  return (
    isBlinded &&
    (goneAt ?? endedAt) - createdAt < LONGEST_BLINDNESS_MS + (faults.slow > 0 ? faults.slowestMs : 0)
  );
}
