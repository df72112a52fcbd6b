import { type Parameters, requiredText, wholeNumber, words } from "./parameters.ts";

/** A path of the API and its parameters. Its response is in `answers`. */
export interface Operation<P extends Parameters> {
  /** One line for the list of routes. */
  readonly summary: string;
  readonly parameters: P;
  /** The setting that enables it. */
  readonly setting?: string;
}

const operation = <P extends Parameters>(summary: string, parameters: P, setting?: string): Operation<P> => ({
  summary,
  parameters,
  ...(setting ? { setting } : {}),
});

// Two names of maximum length, and a slash.
const LONGEST_POD = 2 * 253 + 1;
const LONGEST_NAME = 253;
const LONGEST_TOKEN = 1_024;
/** Maximum number of rounds in a page of records. */
const MOST_PAGE_ROUNDS = 100;
const MOST_ITEMS = 1_000;

const since = wholeNumber("Only items that are not older; milliseconds since the epoch.");
const until = wholeNumber("Only items that are not newer; milliseconds since the epoch.", {
  fallback: Number.MAX_SAFE_INTEGER,
});
const limit = wholeNumber("Maximum number of items in the page.", {
  fallback: 500,
  least: 1,
  most: MOST_ITEMS,
});
const continued = words("`continue` of the previous page.", LONGEST_TOKEN);
const selector = {
  uid: words("Only this pod.", LONGEST_NAME),
  namespace: words("Only pods of this namespace.", LONGEST_NAME),
  name: words("Only pods of this name.", LONGEST_NAME),
};
const named = (about: string, expected: string, longest = LONGEST_NAME) =>
  requiredText(about, longest, (text) => text !== "", `the query needs ${expected}`);
const after = wholeNumber("`next` of the previous page.");
const publishedObject = named(
  "`object` of one in /api/v1/objects.",
  "object=<object of one in /api/v1/objects>",
  1_024,
);
const eviction = "eviction.enabled";
const lifecycle = "lifecycle.enabled";

/** All paths below /api/v1 with a JSON response. */
export const operations = {
  version: operation("The agent's version and node.", {}),
  node: operation("Summary of the node: health, counts, whether eviction is live.", {}),
  configuration: operation("The configuration in force.", {}),
  plugins: operation("Plugins: their registration, and what they report.", {}),
  "plugins/exchange": operation(
    "The last exchanges between a plugin and the agent, and the durations of calls.",
    {
      type: named("`type` of one in /api/v1/plugins.", "type=<type of one in /api/v1/plugins>"),
      name: named("Its name.", "name=<name>"),
    },
  ),
  objects: operation("What is published to the API server.", {}),
  "objects/fields": operation("The fields of a published object: which plugin reported each.", {
    object: publishedObject,
    limit,
    continue: continued,
  }),
  "objects/content": operation("The content of a published object.", { object: publishedObject }),
  devices: operation("Drivers, their devices and slices.", {}),
  "devices/list": operation("The devices of a driver: health, slices, and the claims that hold them.", {
    driver: named("The driver's name.", "driver=<name>"),
    limit,
    continue: continued,
  }),
  claims: operation("ResourceClaims by driver, and whether the kubelet has registered the agent for it.", {}),
  marks: operation(
    "Marks of a timeline: starts of the agent, plugins, taints, evictions: ?since=<wall ms>&until=<wall ms>&after=<next>.",
    { since, until, after, limit },
  ),
  pods: operation(
    "Pods and containers as the container runtime reports them: ?namespace=&name=&uid=.",
    { ...selector, limit, continue: continued },
    lifecycle,
  ),
  "pods/usage": operation(
    "CPU and memory that each pod uses now, read when it is asked for, at most once in five seconds.",
    {},
  ),
  events: operation(
    "Pod lifecycle events from a cursor or a time: ?cursor=<cursor> or ?since=<wall ms>.",
    { ...selector, cursor: words("`cursor` of an event, or of the previous page.", 64), since, limit },
    lifecycle,
  ),
  "eviction/explain": operation(
    "Why a pod was evicted or not: ?pod=<namespace>/<name> or ?pod=<uid>.",
    {
      pod: requiredText(
        "<namespace>/<name> or <uid>.",
        LONGEST_POD,
        (text) => text.split("/").length <= 2 && text.split("/").every((part) => part !== ""),
        "the query needs pod=<namespace>/<name> or pod=<uid>",
      ),
    },
    eviction,
  ),
  "eviction/node": operation(
    "Conditions and taints that eviction sets: by which plugin, why, since when, until when.",
    {},
    eviction,
  ),
  "eviction/budgets": operation(
    "What limits evictions now, how much of it is used, and what is paused, queued or in progress.",
    {},
    eviction,
  ),
  "eviction/candidates": operation(
    "The pods by QoS, and how many of them can be evicted now, or why not.",
    {},
    eviction,
  ),
  "eviction/eligibility": operation(
    "The pods of the node, and of each whether it can be evicted now, or why not and until when.",
    {},
    eviction,
  ),
  "eviction/pods": operation(
    "Pods that are or were on the node: ?text=<a part of namespace/name, or a UID>.",
    {
      text: words("A part of <namespace>/<name>, or a whole UID. Default: all pods.", LONGEST_POD),
      limit,
    },
    eviction,
  ),
  "eviction/history": operation(
    "What happened to the node and to each of its pods, in pages: ?since=<wall ms>&after=<next>.",
    { since, after },
    eviction,
  ),
  "eviction/rounds": operation(
    "Summaries of rounds in which something happened, in pages: ?since=<wall ms>&after=<id of the last round received>.",
    { since, after: wholeNumber("Id of the last round received. An empty page is the end.") },
    eviction,
  ),
  "eviction/records": operation(
    "The same rounds with their complete input and decision, in pages: ?since=<wall ms>&after=<id>&limit=<1 to 100>.",
    {
      since,
      after,
      limit: wholeNumber("Maximum number of rounds in the page.", {
        fallback: MOST_PAGE_ROUNDS,
        least: 1,
        most: MOST_PAGE_ROUNDS,
      }),
    },
    eviction,
  ),
  "eviction/evictions": operation(
    "Victims of rounds, in pages: which pod, by which plugin, why, and how it ended: ?since=<wall ms>&after=<next>.",
    { since, after },
    eviction,
  ),
  "eviction/readings": operation(
    "Observed values against thresholds, of recorded rounds and of the last 120: ?since=<wall ms>&until=<wall ms>&step=<ms>.",
    {
      since,
      until,
      after,
      step: wholeNumber("Milliseconds: of each such interval only the first round. 0: all rounds."),
    },
    eviction,
  ),
  "eviction/signals": operation(
    "Observed values against thresholds, one a minute for 24 hours: ?since=<wall ms>&until=<wall ms>&plugin=<name>.",
    { since, until, plugin: words("Only signals of this plugin.", LONGEST_NAME) },
    eviction,
  ),
  "openapi.json": operation("This API as an OpenAPI 3.1 document.", {}),
} as const;
