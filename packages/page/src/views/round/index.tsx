import { Waiting } from "../../parts/notice.tsx";
import type { ViewProps } from "../../view-props.ts";
import { OneRound } from "./one-round.tsx";
import { RoundList } from "./round-list.tsx";

/** `#/round/<id>`: what a round read and decided. `#/round`: recent rounds to choose from. */
export function RoundView({ live, address: { path } }: ViewProps) {
  if (live.node?.eviction === null) return <EvictionOff />;
  if (!live.node) return <Waiting>Waiting for the agent's first answer.</Waiting>;
  const [text] = path;
  if (text === undefined) return <RoundList live={live} />;
  const id = /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  return <OneRound key={text} id={id} text={text} live={live} />;
}

function EvictionOff() {
  return (
    <p class="notice">
      <b>Eviction is off:</b> no rounds are decided. To decide and record them without evicting, set{" "}
      <code>eviction.enabled: true</code> and <code>eviction.dryRunPlugins: ["*"]</code>, the default.
    </p>
  );
}
