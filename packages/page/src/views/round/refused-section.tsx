import { counted, reasonText, refusalCountTexts } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { PluginLink } from "../../parts/plugin-links.tsx";
import { PodLink } from "../../parts/pod-link.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { type RoundRecord, unlistedRefusals } from "./words.ts";

const MOST_AT_FIRST = 20;

/** Requests that were not granted, and why. */
export function RefusedSection({ record: { decision } }: { record: RoundRecord }) {
  const [isWhole, setWhole] = useState(false);
  const { refusals, refusalCounts } = decision;
  if (refusals.length === 0 && Object.keys(refusalCounts).length === 0) return null;
  const unlisted = unlistedRefusals(decision);
  const listed = isWhole ? refusals : refusals.slice(0, MOST_AT_FIRST);
  return (
    <Section title="Requests not granted" remark={refusalCountTexts(refusalCounts).join(", ")}>
      <Table
        label="Requests that were not granted"
        columns={["Pod", "Requested by", "Why it was not evicted"]}
        rows={listed.map((one, index) => ({
          key: `${index} ${one.uid}`,
          cells: [
            <PodLink {...one} />,
            <PluginLink name={one.plugin} />,
            <Prose text={reasonText(one.reason, one.message)} longest={500} />,
          ],
        }))}
      />
      {listed.length < refusals.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {counted(refusals.length, "request")}
        </button>
      )}
      {unlisted > 0 && (
        <p class="quiet">{counted(unlisted, "more request")} not recorded: 200 of a plugin are.</p>
      )}
    </Section>
  );
}
