import type { CatalogueEntries } from "./entry.ts";

/** NK13xx: registration of plugins. `nodekeeper plugins list` shows them as the reason of a plugin's state. */
export const pluginErrors: CatalogueEntries = {
  NK1301: {
    title: "The plugin's type is not known",
    cause:
      "GetInfo names a type that the agent has no handler for; or the part that takes this type is switched off (`eviction.enabled`).",
    remedy: "Use one of the types in the message. Types are case-sensitive.",
  },
  NK1302: {
    title: "The plugin's name is refused",
    cause:
      "A name has 1 to 253 letters, digits, `.`, `-` and `_`, and begins and ends with a letter or digit. A device driver's name is a DNS subdomain.",
    remedy: "Change the name that the plugin gives in GetInfo.",
  },
  NK1303: {
    title: "Another live plugin has this name",
    cause: "Two processes register the same type and name. The newer socket owns it.",
    remedy:
      "Stop one of them, or give it another name. After a rolling update the older one exits by itself.",
  },
  NK1304: {
    title: "The name belongs to an in-tree plugin",
    cause: "A plugin inside the agent has this type and name.",
    remedy:
      "Choose another name, or disable the in-tree plugin with `-name` in `eviction.inTreePlugins` or `reporting.inTreePlugins`.",
  },
  NK1305: {
    title: "Too many plugins are registered",
    cause:
      "`plugins.maxPlugins` are registered; or as many reporter plugins were lost and wait for the end of their grace period.",
    remedy:
      "Remove plugins that are no longer needed, or raise `plugins.maxPlugins`. A place that becomes free is given to one that waits.",
  },
  NK1306: {
    title: "None of the plugin's versions is supported",
    cause: "GetInfo's `supported_versions` has no version that the agent speaks for this type.",
    remedy:
      "The message has the versions that are accepted. Check that the plugin is built for Nodekeeper, katalyst or the kubelet's DRA.",
  },
  NK1307: {
    title: "The plugin's list of versions is refused",
    cause: "`supported_versions` has too many entries, or one that is too long.",
    remedy: "List only the versions that the plugin really serves.",
  },
  NK1308: {
    title: "The plugin's endpoint is no path of a socket",
    cause: "`endpoint` in GetInfo is not absolute, has more than 107 bytes, or contains a NUL byte.",
    remedy:
      "Give the absolute path of a unix socket as the node sees it, or leave `endpoint` empty for the registration socket itself.",
  },
  NK1309: {
    title: "The plugin's endpoint can't be found",
    cause:
      "The socket that the plugin names does not exist, or is not visible in the agent's mount namespace.",
    remedy:
      "Let the plugin create the socket before it registers, and mount its folder into the agent's container at the same path. It is tried again.",
  },
  NK1310: {
    title: "The plugin's endpoint is outside of the trusted folders",
    cause: "The socket, links resolved, is not below `plugins.directories` or `plugins.endpointDirectories`.",
    remedy: "Serve the endpoint in one of these folders, or add its folder to `plugins.endpointDirectories`.",
  },
  NK1311: {
    title: "The plugin's endpoint is the socket of another service",
    cause: "The plugin names the container runtime's or the agent's own socket as its endpoint.",
    remedy:
      "Correct the plugin: an endpoint is a socket that it serves itself. If no operator changed the plugin, treat it as tampering.",
  },
  NK1312: {
    title: "The socket belongs to a user that is not trusted",
    cause:
      "Sockets of plugins belong to root, to the agent's own user, or to a user of `plugins.allowedUids`.",
    remedy:
      "Run the plugin as one of these users, or add its user id to `plugins.allowedUids`. A trusted plugin decides what the node publishes and which pods are evicted. An agent without CAP_DAC_OVERRIDE, as in the chart's container, also needs the file's permission to connect although it is root: a socket of another user has mode 0660 with group 0, or 0666 in a folder of mode 0750.",
  },
  NK1313: {
    title: "Other users can change the socket's folder",
    cause:
      "A folder on the way to the socket is writable for its group or for all, and could be used to replace the plugin.",
    remedy: "Remove the permission that the message names (`chmod go-w`), or serve the socket elsewhere.",
  },
  NK1314: {
    title: "The plugin did not complete the registration",
    cause:
      "A call of the handshake had no answer in time or failed: the process hangs, is still starting, or speaks another protocol on the socket.",
    remedy:
      "Look at the plugin's log. It is tried again with backoff; `plugins.infoTimeout` and `plugins.notifyTimeout` are the deadlines.",
  },
  NK1315: {
    title: "The plugin's token is refused",
    cause: "`eviction.strict` is on, and the plugin has no token, or one that the API server does not know.",
    remedy: "Give the plugin a token of its service account (GetToken), or switch `eviction.strict` off.",
  },
  NK1316: {
    title: "The plugin's account may not evict pods",
    cause: "`eviction.strict` is on, and the account of the plugin's token may not create `pods/eviction`.",
    remedy: "Bind a role with `create` on `pods/eviction` to the account that the message names.",
  },
  NK1317: {
    title: "A directory of plugins can't be read",
    cause:
      "A directory of `plugins.directories` can't be made or read: permissions, or a path that is not mounted.",
    remedy:
      "Correct its owner and mode, and mount it into the agent's container. Plugins in other directories are not affected.",
  },
  NK1318: {
    title: "A part of the plugin directories is skipped",
    cause:
      "A directory has more entries, sockets or subdirectories than the agent scans, or a part can't be read.",
    remedy:
      "Remove what does not belong there, or set `plugins.directories` to the directories that plugins use.",
  },
  NK1319: {
    title: "A plugin on the SDK is not registered after 10 s",
    cause:
      "Logged by the plugin, with its directory and the reason: no agent called its socket, the agent did not report an outcome, or it refused the plugin.",
    remedy:
      "Start the agent, or give the plugin a directory of the agent's `plugins.directories` as `socketDir`. `nodekeeper plugins list` shows the sockets that the agent found and why it refused one.",
  },
};
