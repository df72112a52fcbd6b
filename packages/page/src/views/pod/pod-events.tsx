import { useMemo } from "preact/hooks";
import { ask } from "../../api.ts";
import type { LifecycleEvent, Live } from "../../live.ts";
import { Problem } from "../../parts/notice.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useRead } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";
import { eventsOf, readEventsOf } from "./events-of.ts";

const MOST_SHOWN = 100;

const words: Readonly<Record<LifecycleEvent["type"], string>> = {
  ContainerStarted: "started",
  ContainerDied: "exited",
  ContainerRemoved: "removed",
  PodSync: "status read again",
};

/** The lifecycle events of a pod: from the log, and live while the page is open. */
export function PodEvents({ uid, live }: { uid: string; live: Live }) {
  const logged = useRead({ key: uid, version: live.missedAt }, (signal) =>
    readEventsOf(uid, (query) => ask("events", query, signal)),
  );
  const last = live.events.at(-1);
  const events = useMemo(() => eventsOf(uid, logged.value ?? [], live.events), [uid, logged.value, last]);
  if (logged.problem && events.length === 0) return <Problem problem={logged.problem} />;
  if (events.length === 0) return null;
  const newest = events.slice(-MOST_SHOWN).reverse();
  return (
    <Section
      title="Lifecycle events"
      remark={events.length > MOST_SHOWN ? `the last ${MOST_SHOWN} of ${events.length}` : "newest first"}
    >
      <Table
        label="Lifecycle events of the pod, newest first"
        columns={["Time", "Event", "Container", "Exit code", "Reason"]}
        rows={newest.map(({ sequence, at, type, container, exitCode, reason }) => ({
          key: sequence,
          cells: [
            <Time at={at} />,
            type === "PodSync" && reason ? "removed, status not read" : words[type],
            container && (container.kind === "sandbox" ? "sandbox" : shown(container.name)),
            exitCode,
            shown(reason),
          ],
        }))}
      />
    </Section>
  );
}
