import type { Live } from "../../live.ts";

const REFUSED_EVERY_MS = 15_000;

/**
 * Changes when there may be something new about a pod: a round that selected it or in which its eviction ended, a lifecycle
 * event of it, or that answers may have been missed. A round that refused pods does not name them: those count every 15 s.
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
