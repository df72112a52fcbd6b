import * as s from "../schemas/index.ts";

/** What the agent does not publish or accept as a driver reported it. */
export const driverProblem = s.named(
  "DriverProblem",
  s.object({
    errorId: s.text("Its id in docs/errors.md."),
    message: s.text(),
    pool: s.optional(s.text()),
    device: s.optional(s.text()),
    claimUid: s.optional(s.text()),
    since: s.time("Since when it exists, at the earliest the agent's start."),
  }),
);

const slice = s.object({
  name: s.text(),
  pool: s.text(),
  generation: s.integer(),
  devices: s.integer(),
});

const driver = s.named(
  "Driver",
  s.object({
    name: s.text(),
    isRegistered: s.flag(),
    state: s.oneOf(
      ["waiting", "streaming", "unresponsive", "ended", "failing", "none"],
      "Of its stream of devices; `unresponsive`: the stream is open, and the driver's process does not answer.",
    ),
    since: s.time("Since when it is in this state."),
    protocol: s.text(),
    messageAt: s.optional(s.time("Its last message.")),
    error: s.optional(s.text("What is wrong with its stream or its process.")),
    reported: s.integer("Valid devices that the driver reports."),
    devices: s.integer("Devices in complete pools at the API server: what the scheduler sees."),
    pools: s.list(s.object({ name: s.text(), devices: s.integer() })),
    slices: s.list(slice, "The agent's ResourceSlices, as the API server has them."),
    foreign: s.list(s.text(), "Slices of other clients in the same pools."),
    quarantined: s.integer(
      "Devices that are not published: they are invalid, refused, or would be allocated on other terms without a field.",
    ),
    problems: s.list(
      s.object({ pool: s.text(), device: s.optional(s.text()), field: s.text(), message: s.text() }),
      "At most 100.",
    ),
    writeError: s.optional(s.text("Why the slices can't be written.")),
    refused: s.map(s.text(), "Slices that the API server refuses, with its message."),
    dropped: s.list(
      s.object({
        pool: s.optional(s.text()),
        device: s.optional(s.text()),
        field: s.text(),
        feature: s.optional(
          s.text("The feature that the field needs; absent if the API server stored different content."),
        ),
      }),
      "What the API server does not store, or stores differently; at most 100.",
    ),
    clusterPools: s.optional(
      s.object(
        {
          lease: s.text('"<namespace>/<name>"'),
          holder: s.optional(s.text('Holder of the lease, "<node>_<instance>"; absent if it is not known.')),
          isHolder: s.flag("Whether this agent publishes them. The following is empty otherwise."),
          pools: s.list(s.object({ name: s.text(), devices: s.integer() })),
          devices: s.integer("Devices in complete pools at the API server."),
          slices: s.list(slice),
          writeError: s.optional(s.text("Why the Lease can't be had, or the slices can't be written.")),
          refused: s.map(s.text(), "Slices that the API server refuses, with its message."),
        },
        "Its pools beyond the node. Absent if devices.clusterPools.drivers does not name it.",
      ),
    ),
    claimProblems: s.optional(
      s.list(
        driverProblem,
        "What is refused of its answers and reports about claims; at most 1,000. Absent if nothing is.",
      ),
    ),
  }),
);

export const drivers = s.list(driver);

const driverClaims = s.named(
  "DriverClaims",
  s.object({
    driver: s.text(),
    kubelet: s.oneOf(
      ["waiting", "registered", "refused", "ownPlugin", "none"],
      "`ownPlugin`: the driver registers with the kubelet by itself; `none`: the agent is not its plugin.",
    ),
    reason: s.optional(s.text("Why the kubelet refused.")),
    isPreparing: s.flag("Whether the driver is connected, and prepares devices."),
    disconnectedSince: s.optional(
      s.time("Since when the driver is not connected, at the earliest the agent's start."),
    ),
    problem: s.optional(s.text()),
    unhealthy: s.list(
      s.object({
        pool: s.text(),
        device: s.text(),
        healthy: s.flag(),
        message: s.text(),
        taintEffect: s.text(),
      }),
    ),
    claims: s.list(
      s.object({
        namespace: s.text(),
        name: s.text(),
        uid: s.text(),
        state: s.oneOf(["preparing", "prepared", "unpreparing", "unprepared"]),
        devices: s.list(s.text('"<pool>/<device>"')),
        pods: s.list(s.text('"<namespace>/<name>"'), "Pods whose containers may use its devices."),
        updatedAt: s.time(),
      }),
    ),
  }),
);

export const claims = s.list(driverClaims);

export const devicePage = s.object({
  items: s.list(
    s.named(
      "Device",
      s.object({
        pool: s.text(),
        name: s.text(),
        attributes: s.map(s.text("As JSON.")),
        taints: s.list(s.text('"key=value:effect"')),
        slices: s.list(s.text(), "Names of the ResourceSlices that have it at the API server."),
        unhealthy: s.optional(s.text("The driver's message; absent while it is healthy.")),
        claims: s.list(s.text('"<namespace>/<name>"'), "Claims that hold it."),
      }),
    ),
  ),
  continue: s.optional(s.text("For the next page; absent at the end.")),
});
