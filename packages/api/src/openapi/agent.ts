import {
  anything,
  flag,
  integer,
  list,
  map,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  text,
  time,
} from "./schema.ts";

export const version = object({
  version: text(),
  nodeName: text(),
  node: text('The version of Node.js: "v24.1.0"'),
  startedAt: time("When the agent started."),
});

const healthCheck = named(
  "HealthCheck",
  object({
    name: text(),
    kind: oneOf(["live", "ready"], "`live`: failing means the agent should be restarted."),
    ok: flag(),
    message: text(),
    warning: optional(text("What is wrong although the check passes.")),
    errorId: optional(text("Its id in docs/errors.md.")),
  }),
);

export const nodeSummary = named(
  "NodeSummary",
  object({
    nodeName: text(),
    version: text(),
    startedAt: time("When the agent started."),
    health: object({ ok: flag(), checks: list(healthCheck) }),
    plugins: object({ registered: integer(), failing: integer(), refusing: integer() }),
    refusedContent: integer("Refused parts of reports and conditions, of all plugins."),
    objects: object({
      published: integer(),
      pending: integer("Objects with changes that are not written yet."),
      writes: integer("Since the agent's start."),
      lastWriteAt: optional(time()),
      problem: optional(text("Why something can't be published.")),
    }),
    lifecycle: nullable(object({ pods: integer(), events: integer("The number of the last event.") })),
    eviction: nullable(
      object(
        {
          mode: oneOf(["live", "dryRun", "mixed"], "`mixed`: some plugins are in dry run."),
          dryRunPlugins: list(text()),
          evicted: integer("Evicted pods that were deleted, since the agent's start."),
          conditions: integer(),
        },
        "Null if eviction is disabled.",
      ),
    ),
  }),
);

export const plugin = named(
  "Plugin",
  object({
    name: text(),
    type: text("ReporterPlugin, EvictionPlugin or DRAPlugin."),
    state: text(
      "registering, registered, refused, failed, superseded, unavailable (no process listens on its socket), in-tree, or lost while its grace period runs.",
    ),
    endpoint: optional(text()),
    registrationSocket: optional(text()),
    versions: list(text()),
    since: optional(time("Since when it is in this state.")),
    attempts: integer(),
    contentAt: optional(time("Its last changed content.")),
    contentBytes: integer(),
    contactAt: optional(time("Its last message, or its last answer to a call.")),
    calls: optional(
      object(
        {
          count: integer("Messages of a reporter, calls to an eviction plugin."),
          failures: integer("Calls that failed."),
          perMinute: number("Average since then."),
          meanMs: optional(number("Average duration of a call.")),
        },
        "Since its first registration, or since the agent's start.",
      ),
    ),
    problems: list(text(), "Refused parts of its content or conditions, each with the reason."),
    error: optional(text("The last refusal or failed call.")),
    errorId: optional(text("Its id in docs/errors.md.")),
    errorSince: optional(time("Since when its calls fail, of a reporter or eviction plugin.")),
  }),
);

export const pluginExchanges = named(
  "PluginExchanges",
  object(
    {
      calls: list(
        object({
          call: text("ThresholdMet, GetReportContent, ..."),
          at: time("When it ended, or the message came."),
          ms: optional(number("How long it took; absent for a message of a stream.")),
          request: optional(text("As JSON, at most 2,000 characters.")),
          answer: optional(
            text(
              "As JSON, at most 2,000 characters. A reporter's fields and a driver's devices as they were parsed.",
            ),
          ),
          error: optional(text("Why it failed.")),
          isUnimplemented: optional(
            flag("True if the plugin does not implement the call, which is optional: not a failure."),
          ),
        }),
        "The last call of each method, newest first.",
      ),
      durations: list(
        object({ call: text(), at: time(), ms: number(), ok: flag() }),
        "The last 60 calls, oldest first.",
      ),
    },
    "What a plugin and the agent exchanged last.",
  ),
);

const publishedObject = named(
  "PublishedObject",
  object({
    object: text('The kind: "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource".'),
    plugins: list(text()),
    conflicts: list(
      object({ path: text(), winner: text("The plugin whose value is published."), others: list(text()) }),
      "Fields that plugins report differently.",
    ),
    contested: list(
      object({ path: text(), writers: list(text()), times: integer(), plugins: list(text()) }),
      "Fields that other clients write repeatedly.",
    ),
    unclaimed: list(text(), "Fields of an earlier agent process that no plugin reports."),
    quarantined: map(text(), "Plugins whose content is quarantined, with the reason."),
    writes: integer("Since the agent's start."),
    lastWriteAt: optional(time()),
    pending: flag(),
    lastError: optional(text()),
  }),
);

export const publishedObjects = list(publishedObject);

export const objectContent = object({
  object: text("As in the request."),
  plugins: list(text(), "Plugins whose reports it contains."),
  content: anything(
    "What the agent publishes of the object: kind, name, and the merged fields of plugins. Of a plugin whose content is quarantined, the last accepted content. Without fields of other clients.",
  ),
});

export const fieldPage = object({
  items: list(
    named(
      "FieldOrigin",
      object({
        path: text('"status.resources.capacity.cpu"; an item of a list by its key: "zones[Numa/0]".'),
        plugin: text("The plugin whose value is published."),
        others: list(text(), "Plugins that report the same field and whose value is not used."),
        value: text("As JSON, at most 1,000 characters."),
      }),
    ),
  ),
  continue: optional(text("For the next page; absent at the end.")),
});
