import * as s from "../schemas/index.ts";

const identity = { uid: s.text(), namespace: s.text(), name: s.text() };
const kind = s.oneOf(["container", "sandbox"]);
const state = s.oneOf(
  ["created", "running", "exited", "unknown"],
  "A sandbox is `running` while it is ready.",
);

const containerFields = {
  id: s.text(),
  name: s.text("Empty for a sandbox."),
  kind,
  state,
  attempt: s.integer("Restart count."),
};

const containerStatus = s.named(
  "ContainerStatus",
  s.object({
    ...containerFields,
    createdAt: s.optional(s.time()),
    startedAt: s.optional(s.time()),
    finishedAt: s.optional(s.time()),
    exitCode: s.optional(s.integer("Of a container that has exited.", -(2 ** 31))),
    reason: s.text(),
    message: s.text(),
    image: s.text(),
    imageRef: s.text(),
  }),
);

const podStatus = s.named(
  "PodStatus",
  s.object(
    {
      ...identity,
      ips: s.list(s.text()),
      sandboxes: s.list(containerStatus, "Newest first."),
      containers: s.list(containerStatus, "Newest first."),
      observedAt: s.time("When the runtime was read."),
      error: s.optional(s.text("Why the last reading failed. The status is from an earlier one.")),
    },
    "A pod as the agent last read it from the container runtime.",
  ),
);

export const podPage = s.object({
  items: s.list(podStatus, "By namespace and name."),
  continue: s.optional(s.text("For the next page; absent at the end.")),
  cursor: s.text("The pods reflect all events up to this cursor."),
  listedAt: s.optional(s.time("Start of the last successful relist.")),
  problems: s.list(s.text(), "Problems of the container runtime."),
});

export const podUsage = s.object({
  readAt: s.time("When it was read. Responses within five seconds share one reading."),
  items: s.list(
    s.named(
      "PodUsage",
      s.object({
        uid: s.text("Of a static pod, the UID that the container runtime has."),
        cpu: s.optional(s.number("CPUs, since the reading before.")),
        cpuUnknown: s.optional(s.text("Why `cpu` is absent.")),
        memoryBytes: s.optional(s.integer("Working set, as in `kubectl top pods`.")),
        memoryUnknown: s.optional(s.text("Why `memoryBytes` is absent.")),
      }),
    ),
    "Pods with a cgroup, at most 4,096; for other running pods, what the container runtime reports.",
  ),
  problems: s.list(s.text(), "Why a source could not be read: pods of that source are absent."),
});

/** An item of the lifecycle event log. */
export const lifecycleItem = s.either(
  s.named(
    "LifecycleEvent",
    s.object({
      kind: s.constant("event"),
      cursor: s.text("To continue after this event."),
      event: s.object({
        sequence: s.integer("Increases by one with each event."),
        type: s.oneOf(["ContainerStarted", "ContainerDied", "ContainerRemoved", "PodSync"]),
        at: s.time("When the agent observed it."),
        pod: s.object(identity),
        container: s.optional(s.object({ id: s.text(), name: s.text(), kind })),
        exitCode: s.optional(s.integer("", -(2 ** 31))),
        reason: s.text(
          'The runtime\'s reason for an exit, such as "OOMKilled". Of PodSync: "InspectionFailed" if the pod was removed before ' +
            "it could be inspected.",
        ),
      }),
    }),
  ),
  s.named(
    "LifecycleSnapshot",
    s.object(
      {
        kind: s.constant("snapshot"),
        cursor: s.text(),
        missed: s.optional(s.integer("Number of missed events; absent if unknown.")),
        pods: s.list(s.object({ ...identity, containers: s.list(s.object(containerFields)) })),
      },
      "The pods of the node: events since the cursor have expired, it is a cursor of another log, or the stream was opened before the first list.",
    ),
  ),
);

/** Sent by a stream while a topic is not available yet. */
export const waiting = s.named(
  "WaitingTopic",
  s.object(
    {
      topic: s.constant("events"),
      id: s.text("Of the error."),
      message: s.text("What the topic waits for."),
    },
    "Sent immediately and every 10 s until all pods have been listed for the first time; a snapshot follows.",
  ),
);

export const eventPage = s.object({
  items: s.list(lifecycleItem),
  cursor: s.text("To continue after this page."),
  end: s.flag("Whether these were the last events."),
  listedAt: s.optional(s.time("Start of the last successful relist; absent before the first.")),
  problems: s.list(s.text(), "Problems of the container runtime. Events may be missing meanwhile."),
});
