import { coverageLines, podText, timelineOf, verdictOf } from "@nodekeeper/api/wording";
import { addressOf } from "../../address.ts";
import { useExport } from "../../export/exports.ts";
import { Badge } from "../../parts/badge.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Prose } from "../../parts/prose.tsx";
import { podName, shown } from "../../text.ts";
import { explanationMarkdown } from "./markdown.ts";
import { type Explanation, recordedPod, stampOf } from "./story.ts";
import { timelineAddress } from "./timeline-address.ts";

/** The verdict, as in `nodekeeper explain pod`, and the properties that decide about the pod. */
export function VerdictPanel({ explanation, node }: { explanation: Explanation; node: string }) {
  const { namespace, name, uid, recordsSince, coverage } = explanation;
  const kept = coverageLines(coverage, recordsSince);
  const verdict = verdictOf(explanation);
  const stamp = stampOf(explanation, verdict);
  const pod = recordedPod(explanation);
  const place = timelineAddress(timelineOf(explanation).map(({ at }) => at));
  useExport("Verdict", () => [
    {
      Pod: shown(podName(explanation), 600),
      UID: shown(uid),
      State: stamp.text,
      Verdict: shown(verdict.text, 1_000),
      Spec: pod ? shown(podText(pod), 600) : null,
    },
  ]);
  return (
    <div class={`card ${stamp.tone}`}>
      <p class="pod-stamp" role="status">
        <Badge tone={stamp.tone}>{stamp.text}</Badge>
      </p>
      <p class="pod-sentence">
        <Prose text={verdict.text} />
      </p>
      {pod && <p>{shown(podText(pod), 600)}</p>}
      <p class="quiet">
        UID <code>{shown(uid)}</code>
        {kept.length > 0 && (
          <>
            {" "}
            · <Prose text={kept.join(" ")} />
          </>
        )}
      </p>
      {place && (
        <p>
          <a href={place}>Its place on the timeline</a>
        </p>
      )}
      <Copy
        address={addressOf("pod", [namespace, name], { uid })}
        markdown={(link) => explanationMarkdown(explanation, node, link)}
      />
    </div>
  );
}
