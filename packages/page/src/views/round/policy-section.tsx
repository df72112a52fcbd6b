import { isFullDryRun } from "@nodekeeper/api/decide";
import { age, dryRunNames } from "@nodekeeper/api/wording";
import { addressOf } from "../../address.ts";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { PluginLinks } from "../../parts/plugin-links.tsx";
import { Section } from "../../parts/section.tsx";
import { shown } from "../../text.ts";
import type { RoundRecord } from "./words.ts";

/** The policy of the round: its limits, and whether evictions were sent at all. */
export function PolicySection({ record }: { record: RoundRecord }) {
  const { policy } = record.input;
  const { burst, limits, cooldownMs, grace, skip } = policy;
  const limit = (count: number | null) =>
    count === null ? "no limit" : `${count} in ${age(limits.windowMs)}`;
  const facts: Fact[] = [
    ["Mode", <ModeText policy={policy} />],
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
      <Facts facts={facts} exportedAs="Policy of that time" />
    </Section>
  );
}

function ModeText({ policy }: { policy: RoundRecord["input"]["policy"] }) {
  if (isFullDryRun(policy)) return <>dry run</>;
  const { dry, live } = dryRunNames(policy.dryRunPlugins);
  if (policy.dryRunPlugins.includes("*"))
    return (
      <>
        dry run, except for <PluginLinks names={live} />
      </>
    );
  if (dry.length === 0) return <>live</>;
  return (
    <>
      live, dry run for <PluginLinks names={dry} />
    </>
  );
}
