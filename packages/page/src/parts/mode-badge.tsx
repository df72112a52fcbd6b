import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { Icon } from "./icon.tsx";

const words = {
  off: "Eviction is off",
  dryRun: "Dry run: no pod is evicted",
  live: "Live: pods are evicted",
  mixed: "Live, but dry run for some plugins",
} as const;

/** Whether pods are evicted. It is a mode, which is neither good nor bad, so it has no color. */
export function ModeBadge({ eviction }: { eviction: ApiAnswers["node"]["eviction"] }) {
  const mode = eviction?.mode ?? "off";
  return (
    <strong class={`badge mode ${mode}`}>
      <Icon name={mode === "mixed" ? "dryRun" : mode} />
      {words[mode]}
    </strong>
  );
}
