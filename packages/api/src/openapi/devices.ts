import { flag, integer, list, map, named, object, oneOf, optional, text, time } from "./schema.ts";

const driver = named(
  "Driver",
  object({
    name: text(),
    isRegistered: flag(),
    state: oneOf(
      ["waiting", "streaming", "unresponsive", "ended", "failing", "none"],
      "Of its stream of devices; `unresponsive`: the stream is open, and the driver's process does not answer.",
    ),
    since: time("Since when it is in this state."),
    protocol: text(),
    messageAt: optional(time("Its last message.")),
    error: optional(text("What is wrong with its stream or its process.")),
    reported: integer("Valid devices that the driver reports."),
    devices: integer("Devices in complete pools at the API server: what the scheduler sees."),
    pools: list(object({ name: text(), devices: integer() })),
    slices: list(
      object({ name: text(), pool: text(), generation: integer(), devices: integer() }),
      "The agent's ResourceSlices, as the API server has them.",
    ),
    foreign: list(text(), "Slices of other clients in the same pools."),
    quarantined: integer(
      "Devices that are not published: they are invalid, refused, or would be allocated on other terms without a field.",
    ),
    problems: list(
      object({ pool: text(), device: optional(text()), field: text(), message: text() }),
      "At most 100.",
    ),
    writeError: optional(text("Why the slices can't be written.")),
    refused: map(text(), "Slices that the API server refuses, with its message."),
    dropped: list(
      object({
        pool: optional(text()),
        device: optional(text()),
        field: text(),
        feature: optional(
          text("The feature that the field needs; absent if the API server stored different content."),
        ),
      }),
      "What the API server does not store, or stores differently; at most 100.",
    ),
  }),
);

export const drivers = list(driver);

const driverClaims = named(
  "DriverClaims",
  object({
    driver: text(),
    kubelet: oneOf(
      ["waiting", "registered", "refused", "ownPlugin", "none"],
      "`ownPlugin`: the driver registers with the kubelet by itself; `none`: the agent is not its plugin.",
    ),
    reason: optional(text("Why the kubelet refused.")),
    isPreparing: flag("Whether the driver is connected, and prepares devices."),
    disconnectedSince: optional(
      time("Since when the driver is not connected, at the earliest the agent's start."),
    ),
    problem: optional(text()),
    unhealthy: list(
      object({ pool: text(), device: text(), healthy: flag(), message: text(), taintEffect: text() }),
    ),
    claims: list(
      object({
        namespace: text(),
        name: text(),
        uid: text(),
        state: oneOf(["preparing", "prepared", "unpreparing", "unprepared"]),
        devices: list(text('"<pool>/<device>"')),
        pods: optional(
          list(
            text('"<namespace>/<name>"'),
            "Pods whose containers may use its devices; absent if an earlier version of the agent recorded the claim.",
          ),
        ),
        updatedAt: time(),
      }),
    ),
  }),
);

export const claims = list(driverClaims);

export const devicePage = object({
  items: list(
    named(
      "Device",
      object({
        pool: text(),
        name: text(),
        attributes: map(text("As JSON.")),
        taints: list(text('"key=value:effect"')),
        slices: list(text(), "Names of the ResourceSlices that have it at the API server."),
        unhealthy: optional(text("The driver's message; absent while it is healthy.")),
        claims: list(text('"<namespace>/<name>"'), "Claims that hold it."),
      }),
    ),
  ),
  continue: optional(text("For the next page; absent at the end.")),
});
