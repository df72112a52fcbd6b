import { evictionPluginSections } from "./eviction-plugins.ts";
import { evictionPolicySettings } from "./eviction-policy.ts";
import { inTreeEvictionNames } from "./in-tree-plugins.ts";
import {
  boolean,
  byteSize,
  duration,
  knownNameSelection,
  oneOf,
  optionalPath,
  optionalPathBelowRoot,
  path,
  paths,
  textList,
} from "./leaf.ts";
import { annotationValue } from "./patterns.ts";
import { live, section } from "./section.ts";

const killerNames = ["evictionApi", "deletion", "containerStop"] as const;
const evictionClasses = [
  "reclaimed_cores",
  "shared_cores",
  "dedicated_cores",
  "BestEffort",
  "Burstable",
  "Guaranteed",
] as const;

function qosAnnotations(level: string) {
  return textList(
    [],
    {
      pattern: annotationValue,
      expected: 'annotations such as "example.com/tier=offline"',
      placeholder: "<annotation=value,...>",
      maxItems: 32,
    },
    { about: `Annotations that state ${level}.` },
  );
}

/** Settings of eviction. */
export const evictionSection = section("Eviction of pods when the node is under pressure.", {
  enabled: boolean(true, {
    about: "Whether eviction plugins are called and pods evicted.",
    flag: "eviction",
  }),
  ...live({
    syncPeriod: duration("5s", "1s", "5m", { about: "Interval between the starts of two eviction rounds." }),
    callTimeout: duration("10s", "100ms", "1m", {
      about:
        "Deadline of one call to an eviction plugin; at most syncPeriod. A call that exceeds it is late: it selects no pod. A method that was late three times in a row gets a shorter one until it answers in time: twice the longest of its last eight answers, at least 1s.",
    }),
    outOfTurnRounds: boolean(true, {
      about:
        "Whether a threshold crossed between two rounds starts a round immediately, at most one per second. If false, nothing is sampled between rounds, and plugins' requests for a round are ignored.",
    }),
  }),
  strict: boolean(false, {
    about: "Whether eviction plugins must present a token that the API server authenticates and authorizes.",
  }),
  ...evictionPolicySettings,
  softEvictionNotifyPath: optionalPathBelowRoot("", {
    about:
      "Directory in which pods annotated for soft eviction notices get a file, besides the Event, in the format of katalyst's host-path notifier. Empty: no files.",
  }),
  qosAnnotations: section(
    "Annotations of pods that state a katalyst QoS level, besides katalyst.kubewharf.io/qos_level. A pod whose annotations contradict each other has the level `unknown`.",
    {
      reclaimed: qosAnnotations("reclaimed_cores"),
      shared: qosAnnotations("shared_cores"),
      dedicated: qosAnnotations("dedicated_cores"),
      system: qosAnnotations("system_cores: such a pod is not evicted"),
    },
  ),
  ...live({
    killer: oneOf("evictionApi", killerNames, {
      about:
        "How pods are evicted: through the eviction API, which respects disruption budgets; by deletion; or by stopping their containers through CRI.",
    }),
    killerRules: textList(
      [],
      {
        pattern: new RegExp(`^(${evictionClasses.join("|")})=(${killerNames.join("|")})$`),
        expected: 'rules such as "reclaimed_cores=deletion" or "BestEffort=containerStop"',
        placeholder: "<class=killer,...>",
        maxItems: evictionClasses.length,
      },
      {
        about:
          "Overrides of killer for a katalyst QoS level or a QoS class. A rule for the level takes precedence.",
      },
    ),
  }),
  inTreePlugins: knownNameSelection(["*"], inTreeEvictionNames, {
    about: "The in-tree eviction plugins to run.",
  }),
  ...evictionPluginSections,
  policies: section("Eviction policies in CEL. Each policy runs as an eviction plugin.", {
    ...live({
      files: paths([], 0, 16, { about: "Policy files. They are reloaded when they change." }),
      enabled: textList(
        ["*"],
        {
          pattern: /^(\*|-?[a-z0-9][a-z0-9.-]{0,62})$/,
          expected: 'names: "*" for all, "name" to add one, "-name" to exclude one',
          placeholder: "<name,...>",
          maxItems: 128,
        },
        { about: "Policies of these files to run." },
      ),
    }),
    nodefsPath: path("/var/lib/kubelet", { about: "A path on nodefs, the kubelet's main filesystem." }),
    imagefsPath: optionalPath("", {
      about:
        "A path on imagefs, where the container runtime stores images. Empty: as reported by the runtime.",
    }),
    containerfsPath: optionalPath("", {
      about:
        "A path on containerfs, where the container runtime stores writable layers. Empty: imagefsPath if set, otherwise as reported by the runtime.",
    }),
  }),
  records: section(
    "Retention of round records, which `explain`, `rounds` and `replay` show.",
    live({
      maxAge: duration("168h", "1h", "2160h", {
        about:
          "How long round records are kept, by time that has verifiably passed: a step of the wall clock trims nothing.",
      }),
      maxSize: byteSize("64Mi", "1Mi", "1Gi", {
        about:
          "Approximate limit for the disk space of all round records. Half of it is kept for rounds that selected a pod, ended an eviction or changed a condition; of the others, and among plugins, the one that takes most loses its oldest rounds first.",
      }),
    }),
  ),
});
