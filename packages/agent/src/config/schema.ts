import { evictionSection } from "./eviction-section.ts";
import {
  boolean,
  byteSize,
  decimal,
  duration,
  integer,
  type Leaf,
  objectList,
  oneOf,
  text,
  textList,
} from "./leaf.ts";
import { absolutePath, nodeNamePattern } from "./patterns.ts";
import { section } from "./section.ts";

export const apiVersion = "nodekeeper.dev/v1alpha1";
export const kind = "AgentConfiguration";

/** Every setting of the agent: the one place that says its name, default, range and meaning. */
export const schema = section("The configuration of the Nodekeeper agent.", {
  nodeName: text(
    "",
    {
      pattern: new RegExp(`^$|${nodeNamePattern.source}`),
      expected: "the name of a Node object",
      placeholder: "<name>",
    },
    { about: "The node this agent serves. Empty: the host name in lower case.", env: ["NODE_NAME"] },
  ),
  stateDir: text(
    "/var/lib/nodekeeper/state",
    { pattern: absolutePath, expected: "an absolute path", placeholder: "<path>" },
    { about: "Where the state database is kept. Created if missing." },
  ),
  hostRoot: text(
    "/",
    { pattern: absolutePath, expected: "an absolute path", placeholder: "<path>" },
    { about: "Where the host's /proc and /sys are found; another than / in a container." },
  ),
  log: section("What the agent writes to stderr.", {
    level: oneOf("info", ["debug", "info", "warn", "error"], {
      about: "The least important messages that are written.",
      applied: "live",
    }),
  }),
  kube: section("Access to the API server.", {
    kubeconfig: text(
      "",
      { pattern: /^[^\0]*$/, expected: "a path", placeholder: "<path>" },
      {
        about: "The kubeconfig file. Empty: the service account of the pod, where there is one.",
        flag: "kubeconfig",
        env: ["NODEKEEPER_KUBECONFIG", "KUBECONFIG"],
      },
    ),
    context: text(
      "",
      { pattern: /^[^\0\n]*$/, expected: "the name of a context", placeholder: "<name>", maxLength: 253 },
      { about: "The context of the kubeconfig file. Empty: its current context." },
    ),
    qps: decimal(20, 0.1, 1000, {
      about: "Calls a second to the API server, on average.",
      flag: "kube-api-qps",
    }),
    burst: integer(40, 1, 2000, { about: "Calls at once above that average.", flag: "kube-api-burst" }),
    requestTimeout: duration("10s", "1s", "5m", {
      about: "The deadline of one call to the API server; watches have their own.",
      flag: "kube-api-request-timeout",
    }),
  }),
  server: section("The agent's own HTTP server: health, metrics, status.", {
    address: text(
      "127.0.0.1:10290",
      {
        pattern:
          /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?):(0|[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/,
        expected: 'host:port, such as "127.0.0.1:10290" or "[::1]:10290"',
        placeholder: "<host:port>",
        maxLength: 262,
      },
      {
        about:
          "The address to listen on. Port 0 takes any free port. Beyond loopback it needs tlsCertFile and tlsPrivateKeyFile, and callers need a token whose account may get the path.",
      },
    ),
    tlsCertFile: text(
      "",
      { pattern: /^(\/[^\0]+)?$/, expected: "an absolute path, or nothing", placeholder: "<path>" },
      { about: "The server's certificate in PEM, read again when it changes. Used beyond loopback only." },
    ),
    tlsPrivateKeyFile: text(
      "",
      { pattern: /^(\/[^\0]+)?$/, expected: "an absolute path, or nothing", placeholder: "<path>" },
      { about: "The private key of tlsCertFile in PEM." },
    ),
  }),
  api: section("The agent's gRPC API for other programs on the node.", {
    socket: text(
      "/run/nodekeeper/nodekeeper.sock",
      {
        pattern: /^(\/[^\0]{1,106})?$/,
        expected: "an absolute path of at most 107 bytes, or nothing",
        placeholder: "<path>",
      },
      {
        about:
          "The unix socket to serve it on, mode 0660. Its folder is created if missing. Empty: not served.",
        flag: "api-socket",
      },
    ),
  }),
  runtime: section("The container runtime, over CRI.", {
    endpoint: text(
      "",
      {
        pattern: /^$|^(unix:\/\/)?\/[^\0]{1,106}$/,
        expected: 'a socket, such as "unix:///run/containerd/containerd.sock"',
        placeholder: "<socket>",
      },
      {
        about: "The runtime's socket. Empty: found among the usual places.",
        flag: "runtime-endpoint",
        env: ["CONTAINER_RUNTIME_ENDPOINT"],
      },
    ),
    requestTimeout: duration("2m", "1s", "15m", {
      about: "The deadline of one call to the runtime.",
      flag: "runtime-request-timeout",
    }),
    maxMessageSize: byteSize("16Mi", "1Mi", "256Mi", {
      about: "The largest answer taken from the runtime. A node with very many containers may need more.",
      flag: "runtime-max-message-size",
    }),
  }),
  lifecycle: section("What runs on the node: pod lifecycle events and pod statuses.", {
    enabled: boolean(true, { about: "Whether the container runtime is asked at all.", flag: "lifecycle" }),
    relistPeriod: duration("1s", "100ms", "5m", {
      about: "From the end of one listing of all pods to the start of the next.",
    }),
    eventedRelistPeriod: duration("30s", "1s", "10m", {
      about: "The same while the runtime's own events can be relied on: see docs/lifecycle.md.",
    }),
    useRuntimeEvents: boolean(true, { about: "Whether the runtime is asked for its events." }),
    unhealthyAfter: duration("3m", "5s", "1h", {
      about: "Without a listing for so long the agent is not ready.",
    }),
    inspectionPatience: duration("2s", "100ms", "5m", {
      about: "A pod whose inspection takes longer is stale, and no other waits for it.",
    }),
    maxInspections: integer(32, 1, 256, {
      about: "Pods inspected at once at most; fewer while the runtime is slow.",
    }),
    logCapacity: integer(100_000, 100, 10_000_000, {
      about: "How many events are kept for those who read them later.",
    }),
    savedEvents: integer(20_000, 0, 1_000_000, {
      about: "How many of them survive a restart of the agent.",
    }),
  }),
  plugins: section("Plugins that register over sockets, as the kubelet's do.", {
    directories: textList(
      ["/var/lib/nodekeeper/plugins_registry"],
      {
        pattern: absolutePath,
        expected: "absolute paths",
        placeholder: "<path,...>",
        minItems: 1,
        maxItems: 16,
      },
      { about: "Folders watched for registration sockets. Created if missing.", flag: "plugin-directories" },
    ),
    endpointDirectories: textList(
      ["/var/lib/kubelet/plugins"],
      {
        pattern: absolutePath,
        expected: "absolute paths",
        placeholder: "<path,...>",
        minItems: 0,
        maxItems: 16,
      },
      {
        about:
          "Folders in which the sockets lie that plugins name as their endpoints, besides plugins.directories.",
        flag: "plugin-endpoint-directories",
      },
    ),
    allowedUids: textList(
      [],
      {
        pattern: /^(0|[1-9]\d{0,9})$/,
        expected: "user ids, such as 65532",
        placeholder: "<uid,...>",
        minItems: 0,
        maxItems: 64,
      },
      {
        about:
          "Users whose sockets are accepted as plugins, besides root and the agent's own user. A plugin decides what the node publishes and which pods are evicted.",
        flag: "plugin-allowed-uids",
      },
    ),
    maxPlugins: integer(128, 1, 1024, {
      about: "How many plugins may be registered at once; more are refused.",
      flag: "max-plugins",
    }),
    rescanInterval: duration("10s", "1s", "10m", {
      about: "How often the folders are read again for sockets that no event told of.",
      flag: "plugin-rescan-interval",
    }),
    infoTimeout: duration("10s", "100ms", "5m", {
      about: "The deadline of GetInfo on a registration socket.",
      flag: "plugin-info-timeout",
    }),
    notifyTimeout: duration("5s", "100ms", "5m", {
      about: "The deadline of NotifyRegistrationStatus.",
      flag: "plugin-notify-timeout",
    }),
    livenessInterval: duration("5s", "1s", "10m", {
      about: "How often the sockets of registered plugins are probed.",
      flag: "plugin-liveness-interval",
    }),
  }),
  devices: section("Drivers that stream their devices, and the ResourceSlices these are published in.", {
    wipeDelay: duration("30s", "0s", "1h", {
      about: "How long the slices of a driver that went away stay.",
      applied: "live",
    }),
    settleTime: duration("30s", "0s", "1h", {
      about: "After the start, how long drivers may take to come back before their slices are removed.",
    }),
    minWriteInterval: duration("200ms", "0s", "1m", {
      about: "The least time between two rounds of writes of one driver's slices.",
      applied: "live",
    }),
    maxMessageSize: byteSize("64Mi", "64Ki", "256Mi", { about: "The largest message taken from a driver." }),
  }),
  eviction: evictionSection,
  reporting: section("Reporter plugins, and the objects their reports are published to.", {
    collectInterval: duration("5s", "1s", "10m", {
      about: "How often each plugin is asked for its whole report, beside its stream.",
      applied: "live",
    }),
    callTimeout: duration("10s", "100ms", "5m", {
      about: "The deadline of such a call.",
      applied: "live",
    }),
    pluginGracePeriod: duration("5m", "0s", "24h", {
      about: "How long the last report of a plugin that went away stays published.",
      applied: "live",
    }),
    minWriteInterval: duration("200ms", "0s", "1m", {
      about: "The least time between two writes of one object; what changes meanwhile is written together.",
      applied: "live",
    }),
    resyncInterval: duration("10m", "1m", "24h", {
      about: "How often objects are compared with the API server although nothing changed here.",
      applied: "live",
    }),
    maxContentSize: byteSize("4Mi", "1Ki", "64Mi", { about: "The largest report taken from a plugin." }),
    inTreePlugins: textList(
      ["*"],
      {
        pattern: /^(\*|-?[A-Za-z0-9][A-Za-z0-9._-]{0,252})$/,
        expected: 'names: "*" for all, "name" to add one, "-name" to leave one out',
        placeholder: "<name,...>",
        minItems: 0,
        maxItems: 64,
      },
      { about: "The in-tree plugins to run." },
    ),
    additionalKinds: objectList(
      {
        group: {
          pattern: new RegExp(`^$|${nodeNamePattern.source}`),
          expected: 'The API group; "" is the core group.',
        },
        version: {
          pattern: /^v[1-9]\d*((alpha|beta)[1-9]\d*)?$/,
          expected: "The version, such as v1alpha1.",
        },
        kind: { pattern: /^[A-Z][A-Za-z0-9]{0,62}$/, expected: "The kind, in camel case." },
      },
      { expected: "objects with group, version and kind", maxItems: 64 },
      { about: "Cluster-scoped kinds to publish to besides CustomNodeResource and Node." },
    ),
    managedTaintPrefixes: textList(
      ["node.katalyst.kubewharf.io/", "nodekeeper.dev/"],
      {
        pattern: /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/[A-Za-z0-9._-]{0,63}$/,
        expected: 'prefixes of taint keys, such as "nodekeeper.dev/"',
        placeholder: "<prefix,...>",
        minItems: 0,
        maxItems: 64,
      },
      { about: "Taints whose keys begin so belong to the agent; it never touches others." },
    ),
    kubelet: section("The in-tree reporter of the kubelet's devices, CPUs and memory by NUMA node.", {
      podResourcesSocket: text(
        "/var/lib/kubelet/pod-resources/kubelet.sock",
        {
          pattern: /^\/[^\0]{1,106}$/,
          expected: "an absolute path of at most 107 bytes",
          placeholder: "<path>",
        },
        { about: "The socket of the kubelet's PodResources API." },
      ),
      resyncInterval: duration("30s", "1s", "1h", {
        about: "How often the kubelet is asked although nothing happened.",
      }),
      debounce: duration("500ms", "0s", "1m", {
        about: "How long it is waited after a pod's event for others that come with it.",
      }),
      deviceZones: textList(
        [],
        {
          pattern: /^[^\s=]{1,316}=(?!(?:Socket|Numa)$)[A-Za-z][A-Za-z0-9_.-]{0,62}$/,
          expected: 'resources and zone types, such as "nvidia.com/gpu=GPU"',
          placeholder: "<resource=type,...>",
          minItems: 0,
          maxItems: 64,
        },
        { about: "Resources, and DRA drivers, whose devices are zones of this type." },
      ),
      configFile: text(
        "/var/lib/kubelet/config.yaml",
        { pattern: /^(\/[^\0]*)?$/, expected: "an absolute path, or nothing", placeholder: "<path>" },
        { about: "The kubelet's configuration, for its topology policy. Empty: the policy is not reported." },
      ),
    }),
    system: section("The in-tree reporter of the machine's properties.", {
      reportCPUFlags: boolean(false, { about: "Whether the CPU's flags, some hundred words, are reported." }),
    }),
  }),
});

type Settings<S> =
  S extends Leaf<infer T>
    ? T
    : S extends { readonly settings: infer Nested }
      ? { -readonly [Name in keyof Nested]: Settings<Nested[Name]> }
      : never;

/** The configuration as the agent uses it. Durations are milliseconds, sizes are bytes. */
export type AgentConfiguration = Settings<typeof schema>;
