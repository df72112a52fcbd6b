import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { Badge } from "../../parts/badge.tsx";
import { Problem, Waiting } from "../../parts/notice.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { Age, Time } from "../../parts/time.tsx";
import type { Answer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";
import type { Explanation } from "./story.ts";

type RuntimePod = ApiAnswers["pods"]["items"][number];
type Exit = NonNullable<Explanation["history"]>["exits"][number];
type Container = RuntimePod["containers"][number];

interface Props {
  /** Undefined if the runtime does not have it, or has not responded. */
  pod: RuntimePod | undefined;
  runtime: Answer<ApiAnswers["pods"]>;
  exits: readonly Exit[];
}

/** The pod's current state in the container runtime, and how its containers exited. */
export function RuntimeSection({ pod, runtime, exits }: Props) {
  return (
    <>
      <Section
        title="Container runtime"
        remark={
          pod && (
            <>
              read <Age since={pod.observedAt} />
            </>
          )
        }
      >
        {runtime.problem && <Problem problem={runtime.problem} />}
        {!runtime.value && !runtime.problem && <Waiting>Reading the containers.</Waiting>}
        {runtime.value && !pod && <p>The container runtime of this node does not have the pod (any more).</p>}
        {pod?.error && <p class="notice">What is shown is older: {shown(pod.error, 500)}</p>}
        {pod && <Containers pod={pod} />}
      </Section>
      {exits.length > 0 && <Exits exits={exits} />}
    </>
  );
}

function Containers({ pod }: { pod: RuntimePod }) {
  const all = [...pod.containers, ...pod.sandboxes];
  return (
    <Table
      label="Containers and sandboxes as the container runtime reports them"
      columns={["Container", "State", "Restarts", "Started", "Exited", "Image"]}
      rows={all.map((container) => ({ key: container.id, cells: cellsOf(container) }))}
    />
  );
}

function cellsOf(container: Container) {
  const { name, kind, attempt, startedAt, createdAt, finishedAt, image } = container;
  const since = startedAt ?? createdAt;
  return [
    kind === "sandbox" ? "sandbox" : shown(name),
    <State container={container} />,
    attempt,
    since !== undefined && <Time at={since} />,
    finishedAt !== undefined && <Time at={finishedAt} />,
    image && <span class="pod-image">{shown(image, 300)}</span>,
  ];
}

function State({ container: { state, exitCode, reason, message, kind } }: { container: Container }) {
  const isBad = state === "exited" && exitCode !== undefined && exitCode !== 0;
  const word = kind === "sandbox" && state !== "running" ? "not ready" : state;
  return (
    <>
      <Badge tone={isBad ? "bad" : state === "running" ? "ok" : "quiet"}>{word}</Badge>
      {exitCode !== undefined && ` with code ${exitCode}`} {reason && shown(`(${reason})`)}{" "}
      {message && <span class="quiet">{shown(message, 300)}</span>}
    </>
  );
}

function Exits({ exits }: { exits: readonly Exit[] }) {
  return (
    <Section title="Exits of containers">
      <Table
        label="Exits of containers, oldest first"
        columns={["Container", "Exited", "Code", "Reason", "Memory limit"]}
        rows={exits.map(({ id, name, at, exitCode, reason, memoryLimit }, index) => ({
          key: id || index,
          class: reason === "OOMKilled" ? "failed" : undefined,
          cells: [
            shown(name),
            at === null ? "not known" : <Time at={at} />,
            exitCode ?? "not known",
            shown(reason),
            shown(memoryLimit ?? ""),
          ],
        }))}
      />
    </Section>
  );
}
