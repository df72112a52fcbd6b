import type { Live } from "../../live.ts";

const REFUSED_EVERY_MS = 15_000;

/**
 * Changes if there may be news about a pod: a round that selected it or in which its eviction ended, a lifecycle event
 * of the pod, or messages that may have been missed. Rounds with refusals do not name the pods, so they count at most
 * every 15 s.
 */
export function podVersion(live: Live, uid: string | undefined): string {
  const isIt = (pod: { uid: string }) => pod.uid === uid;
  const round = live.rounds.findLast(
    ({ victims, dryRunVictims, outcomes }) =>
      victims.some(isIt) || dryRunVictims.some(isIt) || outcomes.some(isIt),
  );
  const other = live.rounds.findLast(
    ({ refusals, withdrawals }) => withdrawals > 0 || Object.keys(refusals).length > 0,
  );
  const event = live.events.findLast(({ pod }) => isIt(pod));
  return [round?.id, other && Math.floor(other.at / REFUSED_EVERY_MS), event?.sequence, live.missedAt].join();
}
