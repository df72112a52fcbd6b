import { describe, expect, it } from "vitest";
import type { Ask } from "./decision.ts";
import { PressureGate } from "./pressure.ts";
import type { EvictionsUnderWay } from "./release.ts";

type Request = Pick<Ask, "plugin" | "scope" | "source" | "kind">;

const threshold = (scope: string, kind: Ask["kind"] = "forced", plugin = "p"): Request => {
  return { plugin, scope, source: "threshold", kind };
};
const named = (kind: Ask["kind"], plugin = "p"): Request => {
  return { plugin, scope: kind === "forced" ? "force" : "soft", source: "evictPods", kind };
};

const NOW = 1_000_000;
const COOLDOWN = 30_000;

function gateAfter(victim: Request, { releasedAt }: { releasedAt: number | null }): PressureGate {
  const eviction = { ...victim, uid: "u", namespace: "n", name: "a" };
  const underWay = {
    holding: releasedAt === null ? [{ eviction, until: NOW + 5_000 }] : [],
    recent: [{ ...eviction, ownerUid: null, at: NOW - 40_000, releasedAt }],
  } as unknown as EvictionsUnderWay;
  return new PressureGate(underWay, COOLDOWN, NOW);
}

const terminating = { reason: "pendingRelease", until: NOW + 5_000 };
const cooling = { reason: "cooldown", until: NOW - 10_000 + COOLDOWN };

// The table of docs/eviction.md, "Budget of a node": what waits for whom.
describe("a request after a victim", () => {
  it.each<[string, { of: Request; next: Request }, typeof terminating | null, typeof cooling | null]>([
    ["a threshold, the same scope", { of: threshold("a"), next: threshold("a") }, terminating, cooling],
    ["a threshold, another scope", { of: threshold("a"), next: threshold("b") }, terminating, null],
    ["a soft threshold", { of: threshold("a", "soft"), next: threshold("a", "soft") }, terminating, cooling],
    [
      "a threshold of another plugin",
      { of: threshold("a"), next: threshold("a", "forced", "q") },
      null,
      null,
    ],
    ["a soft request by name", { of: named("soft"), next: named("soft") }, terminating, cooling],
    ["one of another plugin", { of: named("soft"), next: named("soft", "q") }, null, null],
    ["a forced request by name", { of: named("forced"), next: named("forced") }, null, null],
    ["a forced one after a soft one", { of: named("soft"), next: named("forced") }, null, null],
    ["a soft one after a forced one", { of: named("forced"), next: named("soft") }, null, null],
    ["by name after a threshold", { of: threshold("a"), next: named("soft") }, null, null],
    ["a threshold after by name", { of: named("forced"), next: threshold("a") }, null, null],
  ])("%s", (_, { of, next }, whileTerminating, inCooldown) => {
    expect(gateAfter(of, { releasedAt: null }).holds(next)).toEqual(whileTerminating);
    expect(gateAfter(of, { releasedAt: NOW - 10_000 }).holds(next)).toEqual(inCooldown);
    expect(gateAfter(of, { releasedAt: NOW - COOLDOWN }).holds(next)).toBeNull();
  });
});
