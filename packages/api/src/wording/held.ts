import type { HeldReason, HeldThreshold } from "../decide/index.ts";

const texts: Readonly<Record<HeldReason, string>> = {
  pendingRelease: "the eviction of an earlier victim of the same threshold has not ended",
  cooldown: "cooldown after the last eviction for the same threshold",
  nodeLimit: "limit of evictions on this node reached",
  noEligiblePod: "no candidate can be evicted now",
};

/**
 * Describes why a threshold is on hold: "cooldown after the last eviction for the same threshold, at most 12 s left".
 * @param now wall-clock milliseconds
 */
export function heldText({ reason, until }: HeldThreshold, now: number): string {
  const left = until === null ? 0 : Math.ceil((until - now) / 1000);
  return left > 0 ? `${texts[reason]}, at most ${left} s left` : texts[reason];
}
