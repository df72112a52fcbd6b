import { age } from "../../../../agent/src/eviction/wording/index.ts";
import { addressOf } from "../../address.ts";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { PluginLinks } from "../../parts/plugin-links.tsx";
import { Section } from "../../parts/section.tsx";
import { shown } from "../../text.ts";
import type { RoundRecord } from "./words.ts";

/** The policy by which it was decided: what limits it, and whether evictions were sent at all. */
export function PolicySection({ record }: { record: RoundRecord }) {
  const { policy } = record.input;
  const { dryRunPlugins, burst, limits, cooldownMs, grace, skip } = policy;
  const limit = (count: number | null) =>
    count === null ? "no limit" : `${count} in ${age(limits.windowMs)}`;
  const facts: Fact[] = [
    [
      "Mode",
      dryRunPlugins.includes("*") ? (
        "dry run"
      ) : dryRunPlugins.length > 0 ? (
        <>
          live, dry run for <PluginLinks names={dryRunPlugins} />
        </>
      ) : (
        "live"
      ),
    ],
    ["In a round", burst < 0 ? "any number" : `at most ${burst}`],
    ["On the node", limit(limits.perNode)],
    ["Of a namespace", limit(limits.perNamespace)],
    ["Of an owner", limit(limits.perOwner)],
    ["Cooldown", age(cooldownMs)],
    ["Grace period", `${grace.shortestSeconds} to ${grace.longestSeconds} s`],
    ["Protecting labels", skip.labelKeys.map((key) => shown(key)).join(", ") || "none"],
    ["Protecting annotations", skip.annotationKeys.map((key) => shown(key)).join(", ") || "none"],
    ["DaemonSet pods", skip.evictDaemonSetPods ? "may be evicted" : "never"],
  ];
  return (
    <Section
      title="Policy of that time"
      remark={<a href={addressOf("what-if")}>what another one would have evicted</a>}
    >
      <Facts facts={facts} />
    </Section>
  );
}
