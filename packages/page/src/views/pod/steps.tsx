import { timelineOf } from "@nodekeeper/api/wording";
import { exportedTime, useExport } from "../../export/exports.ts";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Time } from "../../parts/time.tsx";
import { shown } from "../../text.ts";
import type { Explanation } from "./story.ts";

/** Steps of the pod, each with its offset from the pod's selection. */
export function Steps({ explanation }: { explanation: Explanation }) {
  const steps = timelineOf(explanation);
  useExport("What happened", () =>
    steps.map(({ at, offset, message }) => ({
      Time: exportedTime(at),
      Offset: offset,
      Step: shown(message, 1_000),
    })),
  );
  if (steps.length === 0) return null;
  return (
    <Section title="What happened" remark="with the time since its selection, or since the first step">
      <ol class="pod-steps">
        {steps.map(({ at, offset, message }, index) => (
          <li key={index}>
            <Time at={at} /> <span class="pod-offset">{offset.replace("-", "\u2212")}</span>{" "}
            <span class="pod-step">
              <Prose text={message} />
            </span>
          </li>
        ))}
      </ol>
    </Section>
  );
}
