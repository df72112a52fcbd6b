import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { dryRunText, howToEvict } from "@nodekeeper/api/wording";
import { ModeBadge } from "../../parts/mode-badge.tsx";
import { Section } from "../../parts/section.tsx";
import { shown } from "../../text.ts";

type Eviction = NonNullable<ApiAnswers["node"]["eviction"]>;

/** Whether pods are evicted, and how to change it. */
export function ModePanel({ node: { eviction } }: { node: ApiAnswers["node"] }) {
  return (
    <Section title="Mode">
      <ModeBadge eviction={eviction} />
      {eviction ? (
        <p>{aboutMode(eviction)}</p>
      ) : (
        <p>
          Nodekeeper evicts no pod and sets no taint. To turn it on, set <code>eviction.enabled: true</code>.
          With <code>eviction.dryRunPlugins: ["*"]</code>, the default, it only records what it would do.
        </p>
      )}
    </Section>
  );
}

function aboutMode({ mode, dryRunPlugins, evicted }: Eviction) {
  if (mode === "live")
    return `${evicted === 1 ? "1 pod was" : `${evicted} pods were`} evicted since the agent's start.`;
  if (mode === "dryRun")
    return `Decisions are made and recorded; no pod is evicted, and no taint is added or removed. To evict, ${howToEvict}.`;
  const names = dryRunText(dryRunPlugins, (name) => shown(name, 80));
  return `Only recorded: requests of ${names}. To evict for all plugins, ${howToEvict}.`;
}
