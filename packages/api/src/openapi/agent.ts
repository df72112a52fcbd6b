import * as s from "../schemas/index.ts";
import { driverProblem } from "./devices.ts";

export const version = s.object({
  version: s.text(),
  nodeName: s.text(),
  node: s.text('The version of Node.js: "v24.1.0"'),
  startedAt: s.time("When the agent started."),
});

const healthCheck = s.named(
  "HealthCheck",
  s.object({
    name: s.text(),
    kind: s.oneOf(["live", "ready"], "`live`: failing means the agent should be restarted."),
    ok: s.flag(),
    message: s.text(),
    warning: s.optional(s.text("What is wrong although the check passes.")),
    errorId: s.optional(s.text("Its id in docs/errors.md.")),
  }),
);

export const nodeSummary = s.named(
  "NodeSummary",
  s.object({
    nodeName: s.text(),
    version: s.text(),
    startedAt: s.time("When the agent started."),
    health: s.object({ ok: s.flag(), checks: s.list(healthCheck) }),
    plugins: s.object({ registered: s.integer(), failing: s.integer(), refusing: s.integer() }),
    refusedContent: s.integer("Refused parts of reports and conditions, of all plugins."),
    objects: s.object({
      published: s.integer(),
      pending: s.integer("Objects with changes that are not written yet."),
      writes: s.integer("Since the agent's start."),
      lastWriteAt: s.optional(s.time()),
      problem: s.optional(s.text("Why something can't be published.")),
    }),
    lifecycle: s.nullable(
      s.object({ pods: s.integer(), events: s.integer("The number of the last event.") }),
    ),
    eviction: s.nullable(
      s.object(
        {
          mode: s.oneOf(
            ["live", "dryRun", "mixed"],
            "Whether plugins are in dry run, also those that are not registered yet. `mixed`: some are.",
          ),
          dryRunPlugins: s.list(s.text()),
          evicted: s.integer("Evicted pods that were deleted, since the agent's start."),
          conditions: s.integer(),
        },
        "Null if eviction is disabled.",
      ),
    ),
  }),
);

export const plugin = s.named(
  "Plugin",
  s.object({
    name: s.text(),
    type: s.text("ReporterPlugin, EvictionPlugin or DRAPlugin."),
    state: s.text(
      "registering, registered, refused, failed, superseded, unavailable (no process listens on its socket), in-tree, or lost while its grace period runs.",
    ),
    endpoint: s.optional(s.text()),
    registrationSocket: s.optional(s.text()),
    versions: s.list(s.text()),
    since: s.optional(s.time("Since when it is in this state.")),
    attempts: s.integer(),
    contentAt: s.optional(s.time("Its last changed content.")),
    contentBytes: s.integer(),
    contactAt: s.optional(s.time("Its last message, or its last answer to a call.")),
    calls: s.optional(
      s.object(
        {
          count: s.integer("Messages of a reporter, calls to an eviction plugin."),
          failures: s.integer("Calls that failed."),
          perMinute: s.number("Average since then."),
          meanMs: s.optional(s.number("Average duration of a call.")),
        },
        "Since its first registration, or since the agent's start.",
      ),
    ),
    problems: s.list(s.text(), "Refused parts of its content or conditions, each with the reason."),
    driverProblems: s.optional(
      s.list(
        driverProblem,
        "Of a device driver: what is not published or accepted as it reported it; at most 1,000. Absent if there is nothing.",
      ),
    ),
    error: s.optional(s.text("The last refusal or failed call.")),
    errorId: s.optional(s.text("Its id in docs/errors.md.")),
    errorSince: s.optional(s.time("Since when its calls fail, of a reporter or eviction plugin.")),
  }),
);

export const pluginExchanges = s.named(
  "PluginExchanges",
  s.object(
    {
      calls: s.list(
        s.object({
          call: s.text("ThresholdMet, GetReportContent, ..."),
          at: s.time("When it ended, or the message came."),
          ms: s.optional(s.number("How long it took; absent for a message of a stream.")),
          request: s.optional(s.text("As JSON, at most 2,000 characters.")),
          answer: s.optional(
            s.text(
              "As JSON, at most 2,000 characters. A reporter's fields and a driver's devices as they were parsed.",
            ),
          ),
          error: s.optional(s.text("Why it failed.")),
          isUnimplemented: s.optional(
            s.flag("True if the plugin does not implement the call, which is optional: not a failure."),
          ),
        }),
        "The last call of each method, newest first.",
      ),
      durations: s.list(
        s.object({ call: s.text(), at: s.time(), ms: s.number(), ok: s.flag() }),
        "The last 60 calls, oldest first.",
      ),
    },
    "What a plugin and the agent exchanged last.",
  ),
);

const publishedObject = s.named(
  "PublishedObject",
  s.object({
    object: s.text('The kind: "node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource".'),
    plugins: s.list(s.text()),
    conflicts: s.list(
      s.object({
        path: s.text(),
        winner: s.text("The plugin whose value is published."),
        others: s.list(s.text()),
      }),
      "Fields that plugins report differently.",
    ),
    contested: s.list(
      s.object({ path: s.text(), writers: s.list(s.text()), times: s.integer(), plugins: s.list(s.text()) }),
      "Fields that other clients write repeatedly.",
    ),
    unclaimed: s.list(s.text(), "Fields of an earlier agent process that no plugin reports."),
    quarantined: s.map(s.text(), "Plugins whose content is quarantined, with the reason."),
    writes: s.integer("Since the agent's start."),
    lastWriteAt: s.optional(s.time()),
    pending: s.flag(),
    lastError: s.optional(s.text()),
  }),
);

export const publishedObjects = s.list(publishedObject);

export const objectContent = s.object({
  object: s.text("As in the request."),
  plugins: s.list(s.text(), "Plugins whose reports it contains."),
  content: s.anything(
    "What the agent publishes of the object: kind, name, and the merged fields of plugins. Of a plugin whose content is quarantined, the last accepted content. Without fields of other clients.",
  ),
});

export const fieldPage = s.object({
  items: s.list(
    s.named(
      "FieldOrigin",
      s.object({
        path: s.text('"status.resources.capacity.cpu"; an item of a list by its key: "zones[Numa/0]".'),
        plugin: s.text("The plugin whose value is published."),
        others: s.list(s.text(), "Plugins that report the same field and whose value is not used."),
        value: s.text("As JSON, at most 1,000 characters."),
      }),
    ),
  ),
  continue: s.optional(s.text("For the next page; absent at the end.")),
});
