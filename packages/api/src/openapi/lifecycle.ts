import {
  constant,
  either,
  flag,
  integer,
  list,
  named,
  object,
  oneOf,
  optional,
  text,
  time,
} from "./schema.ts";

const identity = { uid: text(), namespace: text(), name: text() };
const kind = oneOf(["container", "sandbox"]);
const state = oneOf(["created", "running", "exited", "unknown"], "A sandbox is `running` while it is ready.");

const containerFields = {
  id: text(),
  name: text("Empty for a sandbox."),
  kind,
  state,
  attempt: integer("Restart count."),
};

const containerStatus = named(
  "ContainerStatus",
  object({
    ...containerFields,
    createdAt: optional(time()),
    startedAt: optional(time()),
    finishedAt: optional(time()),
    exitCode: optional(integer("Of a container that has exited.", -(2 ** 31))),
    reason: text(),
    message: text(),
    image: text(),
    imageRef: text(),
  }),
);

const podStatus = named(
  "PodStatus",
  object(
    {
      ...identity,
      ips: list(text()),
      sandboxes: list(containerStatus, "Newest first."),
      containers: list(containerStatus),
      observedAt: time("When the runtime was read."),
      error: optional(text("Why the last reading failed. The status is from an earlier one.")),
    },
    "A pod as the agent last read it from the container runtime.",
  ),
);

export const podPage = object({
  items: list(podStatus, "By namespace and name."),
  continue: optional(text("For the next page; absent at the end.")),
  cursor: text("The pods reflect all events up to this cursor."),
  listedAt: optional(time("Start of the last successful relist.")),
  problems: list(text(), "Problems of the container runtime."),
});

/** An item of the lifecycle event log. */
export const lifecycleItem = either(
  named(
    "LifecycleEvent",
    object({
      kind: constant("event"),
      cursor: text("To continue after this event."),
      event: object({
        sequence: integer("Increases by one with each event."),
        type: oneOf(["ContainerStarted", "ContainerDied", "ContainerRemoved", "PodSync"]),
        at: time("When the agent observed it."),
        pod: object(identity),
        container: optional(object({ id: text(), name: text(), kind })),
        exitCode: optional(integer("", -(2 ** 31))),
        reason: text(
          'The runtime\'s reason for an exit, such as "OOMKilled". Of PodSync: "InspectionFailed" if the pod was removed before ' +
            "it could be inspected.",
        ),
      }),
    }),
  ),
  named(
    "LifecycleSnapshot",
    object(
      {
        kind: constant("snapshot"),
        cursor: text(),
        missed: optional(integer("Number of missed events; absent if unknown.")),
        pods: list(object({ ...identity, containers: list(object(containerFields)) })),
      },
      "The pods of the node: events since the cursor have expired, it is a cursor of another log, or the stream was opened before the first list.",
    ),
  ),
);

/** Sent by a stream while a topic is not available yet. */
export const waiting = named(
  "WaitingTopic",
  object(
    { topic: constant("events"), id: text("Of the error."), message: text("What the topic waits for.") },
    "Sent immediately and every 10 s until all pods have been listed for the first time; a snapshot follows.",
  ),
);

export const eventPage = object({
  items: list(lifecycleItem),
  cursor: text("To continue after this page."),
  end: flag("Whether these were the last events."),
  listedAt: optional(time("Start of the last successful relist; absent before the first.")),
  problems: list(text(), "Problems of the container runtime. Events may be missing meanwhile."),
});
