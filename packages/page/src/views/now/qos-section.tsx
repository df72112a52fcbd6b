import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { counted } from "@nodekeeper/api/wording";
import { Waiting } from "../../parts/notice.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { mixByLevel, qosClasses } from "./qos-mix.ts";

/** The node's pods by katalyst QoS level and by QoS class: a bar, and the numbers. */
export function QosSection({ candidates }: { candidates: ApiAnswers["eviction/candidates"] | undefined }) {
  const levels = mixByLevel(candidates?.mix ?? []);
  return (
    <Section title="QoS mix" remark={candidates && counted(candidates.pods, "pod")}>
      {!candidates && <Waiting>Waiting for the first round.</Waiting>}
      {candidates && levels.length === 0 && <p>No pod is on the node.</p>}
      {levels.length > 0 && (
        <>
          <div class="now-mix" aria-hidden="true">
            {levels.map(({ level, pods }) => (
              <span
                key={level}
                class={`now-level ${level}`}
                style={{ flexGrow: pods }}
                title={`${level}: ${pods}`}
              />
            ))}
          </div>
          <Table
            isNarrow
            label="Pods by QoS level and QoS class"
            columns={["QoS level", "Pods", ...qosClasses]}
            rows={levels.map(({ level, pods, classes }) => ({
              key: level,
              cells: [
                <>
                  <span class={`now-swatch now-level ${level}`} aria-hidden="true" /> {level}
                </>,
                pods,
                ...classes,
              ],
            }))}
          />
        </>
      )}
    </Section>
  );
}
