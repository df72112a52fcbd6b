import type { PodLifecycleEvent, PodLifecycleItem } from "@nodekeeper/sdk";
import { isBefore, type Stage } from "../world/history.ts";

type Snapshot = Extract<PodLifecycleItem, { kind: "snapshot" }>;

/** What a consumer of lifecycle events has been told so far: of each container, the last stage. */
export class ConsumerView {
  readonly stages = new Map<string, Stage>();
  /** Sequence number of the last event. Undefined if the number of the next one does not follow from it. */
  #sequence: number | undefined;
  readonly #isLogLost: () => boolean;

  /**
   * @param isLogLost whether the agent may have lost what it recorded. Then a snapshot that starts a new log may have
   * earlier stages: a pod that the agent can't read keeps its last recorded state (docs/lifecycle.md), or is missing if
   * it has none. The agent can't know what consumers were told of it, and emits these events again
   */
  constructor(isLogLost: () => boolean) {
    this.#isLogLost = isLogLost;
  }

  /** Returns what is wrong with an item after the earlier ones. */
  add(item: PodLifecycleItem): string | undefined {
    if (item.kind === "event") return this.#addEvent(item.event);
    if (item.kind === "snapshot") return this.#addSnapshot(item);
    return undefined;
  }

  #addEvent(event: PodLifecycleEvent): string | undefined {
    const { sequence, type, container, pod } = event;
    const last = this.#sequence;
    this.#sequence = sequence;
    if (last !== undefined && sequence !== last + 1) return `event ${sequence} follows event ${last}`;
    const stage = stageOf(event);
    if (!container || !stage) return undefined;
    const known = this.stages.get(container.id);
    this.stages.set(container.id, stage);
    const isNext = stage === "removed" ? known === "exited" : known === undefined || isBefore(known, stage);
    return isNext
      ? undefined
      : `${type} of ${pod.name} ${short(container.id)}, which was ${known ?? "unknown"}`;
  }

  // What happened between the last event and the snapshot is not told: containers that are not listed were removed.
  #addSnapshot({ pods, why, missed }: Snapshot): string | undefined {
    // The next event shows whether as many were missed as the snapshot says.
    const isCounted = this.#sequence !== undefined && missed !== undefined;
    this.#sequence = isCounted ? this.#sequence! + missed : undefined;
    const mayGoBack = why === "fellOff" && missed === undefined && this.#isLogLost();
    const listed = new Map(
      pods.flatMap(({ containers }) =>
        containers.flatMap(({ id, state }) => (state === "unknown" ? [] : [[id, state] as const])),
      ),
    );
    for (const [id, known] of this.stages) {
      const stage = listed.get(id) ?? "removed";
      if (stage === "removed" && mayGoBack) {
        this.stages.delete(id);
        continue;
      }
      if (isBefore(stage, known) && !mayGoBack)
        return `a snapshot has ${short(id)} as ${stage}, which was ${known}`;
      this.stages.set(id, stage);
    }
    for (const [id, stage] of listed) this.stages.set(id, stage);
    return undefined;
  }
}

/** Returns the stage that a container has reached by an event. */
export function stageOf({ type }: PodLifecycleEvent): Stage | undefined {
  if (type === "ContainerStarted") return "running";
  if (type === "ContainerDied") return "exited";
  return type === "ContainerRemoved" ? "removed" : undefined;
}

/** Returns an ID as commands print it. */
export function short(id: string): string {
  return id.slice(0, 12);
}
