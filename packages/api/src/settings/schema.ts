import { archiveSection } from "./archive.ts";
import { devicesSection } from "./devices.ts";
import { evictionSection } from "./eviction.ts";
import { inTreeReporterNames } from "./in-tree-plugins.ts";
import {
  boolean,
  byteSize,
  decimal,
  duration,
  integer,
  knownNameSelection,
  type Leaf,
  objectList,
  oneOf,
  optionalPath,
  optionalPathBelowRoot,
  path,
  paths,
  text,
  textList,
} from "./leaf.ts";
import { LONGEST_NAME, listenAddress, nodeNamePattern, pluginNameOwner } from "./patterns.ts";
import { flagsAs, live, section } from "./section.ts";

export const apiVersion = "nodekeeper.dev/v1alpha1";
export const kind = "AgentConfiguration";

/** All settings of the agent, with their names, defaults, ranges and descriptions. */
export const schema = section("The configuration of the Nodekeeper agent.", {
  nodeName: text(
    "",
    {
      pattern: new RegExp(`^$|${nodeNamePattern.source}`),
      expected: "the name of a Node object",
      placeholder: "<name>",
      maxLength: LONGEST_NAME,
    },
    {
      about: "Name of the node this agent runs on. Empty: the host name in lower case.",
      aliases: ["NODE_NAME"],
    },
  ),
  stateDir: path("/var/lib/nodekeeper/state", {
    about: "Directory of the state database. Created if missing.",
  }),
  rollingUpdate: boolean(false, {
    about:
      "Whether the agent takes over from another one that uses the state directory, and hands over to one that asks, as in a rolling update with surge. Otherwise an agent fails if the directory is in use.",
  }),
  hostRoot: path("/", {
    about: "Directory that contains the host's /proc and /sys: / on the host, a mount of it in a container.",
  }),
  log: section("Logging to stderr.", {
    level: oneOf("info", ["debug", "info", "warn", "error"], {
      about: "Lowest level that is logged.",
      applied: "live",
    }),
  }),
  kube: section("Access to the API server.", {
    kubeconfig: text(
      "",
      { pattern: /^[^\0]*$/, expected: "a path", placeholder: "<path>" },
      {
        about: "Path of the kubeconfig file. Empty: the pod's service account, if there is one.",
        flag: "kubeconfig",
        aliases: ["KUBECONFIG"],
      },
    ),
    context: text(
      "",
      { pattern: /^[^\0\n]*$/, expected: "the name of a context", placeholder: "<name>", maxLength: 253 },
      { about: "Context in the kubeconfig file. Empty: its current context." },
    ),
    ...flagsAs("kube-api", {
      qps: decimal(20, 0.1, 1000, {
        about: "Maximum average rate of requests to the API server, per second.",
      }),
      burst: integer(40, 1, 2000, { about: "Number of requests allowed to exceed that rate in a burst." }),
      requestTimeout: duration("10s", "1s", "5m", {
        about: "Timeout of one request to the API server. Watches have their own timeout.",
      }),
    }),
  }),
  server: section("The agent's HTTP status server: health, metrics, JSON API.", {
    address: text(
      "127.0.0.1:10290",
      {
        pattern: listenAddress,
        expected: 'host:port, such as "127.0.0.1:10290" or "[::1]:10290"',
        placeholder: "<host:port>",
        maxLength: 262,
      },
      {
        about:
          "Address to listen on. Port 0: any free port. An address other than loopback requires tlsCertFile and tlsPrivateKeyFile, and clients need a token that is authorized to get the path.",
      },
    ),
    remoteAddress: text(
      "",
      {
        pattern: new RegExp(`^$|${listenAddress.source}`),
        expected: 'host:port, such as "0.0.0.0:10291", or empty',
        placeholder: "<host:port>",
        maxLength: 262,
      },
      {
        about:
          "A second address, for other machines: the same over TLS, and clients need a token, while address stays on loopback. Requires tlsCertFile and tlsPrivateKeyFile. Empty: none.",
      },
    ),
    tlsCertFile: optionalPathBelowRoot("", {
      about: "Serving certificate (PEM), reloaded when it changes. Not used on loopback.",
    }),
    tlsPrivateKeyFile: optionalPathBelowRoot("", { about: "Private key for tlsCertFile (PEM)." }),
  }),
  api: section("The agent's gRPC API for local clients.", {
    socket: text(
      "/run/nodekeeper/nodekeeper.sock",
      {
        pattern: /^(\/[^\0]{1,106})?$/,
        expected: "an absolute path of at most 107 bytes, or empty",
        placeholder: "<path>",
      },
      {
        about:
          "Unix socket of the gRPC API, mode 0660. Its directory is created if missing. Empty: not served.",
      },
    ),
  }),
  runtime: section("The container runtime (CRI).", {
    endpoint: text(
      "",
      {
        pattern: /^$|^(unix:\/\/)?\/[^\0]{1,106}$/,
        expected: 'a socket, such as "unix:///run/containerd/containerd.sock"',
        placeholder: "<socket>",
      },
      {
        about: "The runtime's socket. Empty: the well-known sockets are tried.",
        aliases: ["CONTAINER_RUNTIME_ENDPOINT"],
      },
    ),
    requestTimeout: duration("2m", "1s", "15m", { about: "Timeout of one call to the runtime." }),
    maxMessageSize: byteSize("16Mi", "1Mi", "256Mi", {
      about:
        "Maximum size of a response from the runtime. Nodes with several thousand containers may need more.",
    }),
  }),
  lifecycle: section("Pod lifecycle events and pod statuses.", {
    enabled: boolean(true, {
      about: "Whether pods are tracked through the container runtime.",
      flag: "lifecycle",
    }),
    relistPeriod: duration("1s", "100ms", "5m", {
      about: "Interval from the end of one relist of all pods to the start of the next.",
    }),
    eventedRelistPeriod: duration("30s", "1s", "10m", {
      about: "Relist interval while the runtime's container events are reliable: see docs/lifecycle.md.",
    }),
    useRuntimeEvents: boolean(true, { about: "Whether to use the runtime's container events." }),
    unhealthyAfter: duration("3m", "5s", "1h", {
      about: "How long after the last successful relist the readiness check fails.",
    }),
    inspectionPatience: duration("2s", "100ms", "5m", {
      about:
        "How long a relist waits for the inspection of one pod. A pod that takes longer is marked stale.",
    }),
    maxInspections: integer(32, 1, 256, {
      about: "Maximum number of concurrent pod inspections; reduced while the runtime is slow.",
    }),
    logCapacity: integer(100_000, 100, 10_000_000, { about: "Number of events retained in the event log." }),
    savedEvents: integer(20_000, 0, 1_000_000, {
      about: "Number of these events that are persisted across restarts of the agent.",
    }),
  }),
  plugins: section(
    "Plugins that register over unix sockets, with the kubelet's plugin registration protocol.",
    flagsAs("plugin", {
      directories: paths(["/var/lib/nodekeeper/plugins_registry"], 1, 16, {
        about: "Directories watched for registration sockets. Created if missing.",
      }),
      endpointDirectories: paths(["/var/lib/kubelet/plugins"], 0, 16, {
        about: "Directories in which plugin endpoints are allowed, in addition to plugins.directories.",
      }),
      allowedUids: textList(
        [],
        {
          pattern: /^(0|[1-9]\d{0,9})$/,
          expected: "user IDs, such as 65532",
          placeholder: "<uid,...>",
          maxItems: 64,
        },
        {
          about:
            "User IDs whose sockets are accepted as plugins, in addition to root and the agent's user. Plugins decide what is published for the node and which pods are evicted.",
        },
      ),
      nameOwners: textList(
        [],
        {
          pattern: pluginNameOwner,
          expected: "names of plugins with a user ID, such as gpu.example.com=65532",
          placeholder: "<name=uid,...>",
          maxItems: 256,
        },
        {
          about:
            "User IDs that names of plugins and drivers belong to. A plugin with such a name is accepted only if its socket belongs to that user. Any other name belongs to the user who registers it first, until the plugin is lost and its grace period ends.",
        },
      ),
      maxPlugins: integer(128, 1, 1024, {
        about: "Maximum number of registered plugins; further ones are rejected.",
        flag: "max-plugins",
      }),
      rescanInterval: duration("10s", "1s", "10m", {
        about: "Interval at which the directories are rescanned for sockets without an inotify event.",
      }),
      infoTimeout: duration("10s", "100ms", "5m", { about: "Timeout of GetInfo on a registration socket." }),
      notifyTimeout: duration("5s", "100ms", "5m", { about: "Timeout of NotifyRegistrationStatus." }),
      livenessInterval: duration("5s", "1s", "10m", {
        about: "Interval at which the sockets of registered plugins are probed.",
      }),
    }),
  ),
  archive: archiveSection,
  devices: devicesSection,
  eviction: evictionSection,
  reporting: section("Reporter plugins and the objects their reports are published to.", {
    ...live({
      collectInterval: duration("5s", "1s", "10m", {
        about: "Interval of GetReportContent calls to each plugin, in addition to its stream.",
      }),
      callTimeout: duration("10s", "100ms", "5m", { about: "Timeout of a GetReportContent call." }),
      pluginGracePeriod: duration("5m", "0s", "24h", {
        about: "How long the last report of a disconnected plugin stays published.",
      }),
      minWriteInterval: duration("200ms", "0s", "1m", {
        about: "Minimum interval between two writes of one object. Changes in between are written together.",
      }),
      resyncInterval: duration("10m", "1m", "24h", {
        about:
          "Interval at which published objects are compared with the API server even if nothing changed.",
      }),
    }),
    maxContentSize: byteSize("4Mi", "1Ki", "64Mi", { about: "Maximum size of a plugin's report." }),
    inTreePlugins: knownNameSelection(["*"], inTreeReporterNames, {
      about: "In-tree reporter plugins to run.",
    }),
    additionalKinds: objectList(
      {
        group: {
          pattern: new RegExp(`^$|${nodeNamePattern.source}`),
          maxLength: LONGEST_NAME,
          expected: 'The API group; "" is the core group.',
        },
        version: {
          pattern: /^v[1-9]\d*((alpha|beta)[1-9]\d*)?$/,
          maxLength: 63,
          expected: "The version, such as v1alpha1.",
        },
        kind: { pattern: /^[A-Z][A-Za-z0-9]*$/, maxLength: 63, expected: "The kind, in camel case." },
      },
      { expected: "objects with group, version and kind", maxItems: 64 },
      { about: "Cluster-scoped kinds to publish to, in addition to CustomNodeResource and Node." },
    ),
    kubelet: section(
      "In-tree reporter of the kubelet's allocations: devices, CPUs and memory by NUMA node.",
      {
        podResourcesSocket: text(
          "/var/lib/kubelet/pod-resources/kubelet.sock",
          {
            pattern: /^\/[^\0]{1,106}$/,
            expected: "an absolute path of at most 107 bytes",
            placeholder: "<path>",
          },
          { about: "Socket of the kubelet's PodResources API." },
        ),
        resyncInterval: duration("30s", "1s", "1h", {
          about: "Interval at which the kubelet is queried even if no pod changed.",
        }),
        debounce: duration("500ms", "0s", "1m", {
          about:
            "Delay between a pod's lifecycle event and the query, so that several events cause one query.",
        }),
        deviceZones: textList(
          [],
          {
            pattern: /^[^\s=]{1,316}=[A-Za-z][A-Za-z0-9_.-]{0,62}$/,
            except: /=(Socket|Numa)$/,
            expected: 'resources and zone types, such as "nvidia.com/gpu=GPU"',
            placeholder: "<resource=type,...>",
            maxItems: 64,
          },
          { about: "Topology zone type for the devices of a resource or a DRA driver." },
        ),
        siblingNumaMaxDistance: integer(0, 0, 255, {
          about:
            "Greatest distance at which the NUMA nodes nearest to a node are reported as its siblings, as in /sys/devices/system/node/node0/distance. 10 is a node's distance to itself; below that a node has no siblings.",
        }),
        configFile: optionalPath("/var/lib/kubelet/config.yaml", {
          about:
            "The kubelet's configuration file, read for its topology manager policy. Empty: the policy is not reported.",
        }),
      },
    ),
    system: section("In-tree reporter of the machine's properties.", {
      reportCPUFlags: boolean(false, { about: "Whether to report CPU flags (over a hundred values)." }),
    }),
  }),
});

type Settings<S> =
  S extends Leaf<infer T>
    ? T
    : S extends { readonly settings: infer Nested }
      ? { -readonly [Name in keyof Nested]: Settings<Nested[Name]> }
      : never;

/** Configuration as used by the agent. Durations are in milliseconds, sizes in bytes. */
export type AgentConfiguration = Settings<typeof schema>;

export type EvictionSettings = AgentConfiguration["eviction"];
