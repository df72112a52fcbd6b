import type { HeldReason, HeldThreshold } from "../decide/decision.ts";

const texts: Readonly<Record<HeldReason, string>> = {
  pendingRelease: "an earlier victim of the same pressure is still terminating",
  cooldown: "cooldown after the last eviction for the same pressure",
  nodeLimit: "limit of evictions on this node",
  noEligiblePod: "no pod can be evicted now",
};

/** What holds a threshold back: "cooldown after the last eviction for the same pressure, 12 s left". @param now wall milliseconds */
export function heldText({ reason, until }: HeldThreshold, now: number): string {
  const left = until === null ? 0 : Math.ceil((until - now) / 1000);
  return left > 0 ? `${texts[reason]}, at most ${left} s left` : texts[reason];
}
