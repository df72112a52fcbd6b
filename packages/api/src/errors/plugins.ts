import { declareError, declareProblem } from "./declare.ts";

// NK13xx: registration of plugins. `nodekeeper plugins list` shows them as the reason of a plugin's state.

export const PluginTypeUnknown = declareError({
  id: "NK1301",
  code: "unsupported",
  message: "unknown plugin type {type}; accepted types: {accepted}",
  title: "The plugin's type is unknown",
  cause:
    "GetInfo returns a type that the agent does not handle, or the part of the agent that handles it is disabled (`eviction.enabled`).",
  remedy: "Use one of the types in the message. Types are case-sensitive.",
});

export const PluginNameRefused = declareError({
  id: "NK1302",
  code: "invalid",
  message: "plugin name {name} is refused: {rule}",
  title: "The plugin's name is invalid",
  cause:
    "A name has 1 to 253 letters, digits, `.`, `-` and `_`, and begins and ends with a letter or digit. A device driver's name is a DNS subdomain.",
  remedy: "Change the name that the plugin returns in GetInfo.",
});

export const PluginNameInUse = declareError({
  id: "NK1303",
  code: "conflict",
  message:
    "another live plugin owns the {type} name {name}: {socket} is newer; use another name or stop the other plugin",
  title: "Another live plugin has this name",
  cause: "Two processes of one user register the same type and name. The newer socket owns it.",
  remedy:
    "Stop one of them, or give it another name. After a rolling update, the older one exits on its own.",
});

export const PluginNameReserved = declareError({
  id: "NK1304",
  code: "forbidden",
  message: "the {type} name {name} is reserved for an in-tree plugin; use another name",
  title: "The name belongs to an in-tree plugin",
  cause: "An in-tree plugin has this type and name.",
  remedy:
    "Choose another name, or disable the in-tree plugin with `-name` in `eviction.inTreePlugins` or `reporting.inTreePlugins`.",
});

export const TooManyPlugins = declareError({
  id: "NK1305",
  code: "exhausted",
  message: "too many plugins: the limit plugins.maxPlugins ({limit}) is reached",
  title: "Too many plugins are registered",
  cause: "The limit `plugins.maxPlugins` is reached.",
  remedy:
    "Remove plugins that are no longer needed, or raise `plugins.maxPlugins`. A waiting plugin is registered as soon as another one is removed.",
});

export const PluginVersionsUnsupported = declareError({
  id: "NK1306",
  code: "unsupported",
  message: "supported versions of {type}: {supported}; the plugin offers {offered}",
  title: "None of the plugin's versions is supported",
  cause: "`supported_versions` in GetInfo has no version that the agent supports for this type.",
  remedy:
    "The message lists the accepted versions. Check that the plugin is built for Nodekeeper, katalyst or the kubelet's DRA.",
});

export const PluginVersionsRefused = declareError({
  id: "NK1307",
  code: "invalid",
  title: "The plugin's list of versions is invalid",
  cause: "`supported_versions` has too many entries, or one that is too long.",
  remedy: "List only the versions that the plugin serves.",
});

export const PluginEndpointInvalid = declareError({
  id: "NK1308",
  code: "invalid",
  message: "invalid endpoint: {problem}",
  title: "The plugin's endpoint is not the path of a socket",
  cause: "`endpoint` in GetInfo is not absolute, has more than 107 bytes, or contains a NUL byte.",
  remedy:
    "Return the absolute path of a unix socket on the node, or leave `endpoint` empty to use the registration socket.",
});

export const PluginEndpointMissing = declareError({
  id: "NK1309",
  code: "unavailable",
  message: "endpoint {endpoint} not found",
  title: "The plugin's endpoint can't be found",
  cause: "The socket that the plugin names does not exist, or is not visible in the agent's mount namespace.",
  remedy:
    "Create the socket before the plugin registers, and mount its directory into the agent's container at the same path. The agent retries.",
});

export const PluginEndpointOutside = declareError({
  id: "NK1310",
  code: "forbidden",
  message:
    "endpoint {endpoint} is outside of {allowed}; serve it there, or add its directory to plugins.endpointDirectories",
  title: "The plugin's endpoint is outside the trusted directories",
  cause:
    "The socket, after symbolic links are resolved, is not below `plugins.directories` or `plugins.endpointDirectories`.",
  remedy:
    "Serve the endpoint in one of these directories, or add its directory to `plugins.endpointDirectories`.",
});

export const PluginEndpointForeign = declareError({
  id: "NK1311",
  code: "forbidden",
  message: "endpoint {endpoint} is a socket of the agent or the container runtime, not of a plugin",
  title: "The plugin's endpoint is the socket of another service",
  cause: "The plugin returns the container runtime's or the agent's own socket as its endpoint.",
  remedy:
    "Correct the plugin: its endpoint must be a socket that it serves itself. If no operator changed the plugin, treat it as tampering.",
});

export const SocketOwnerNotTrusted = declareError({
  id: "NK1312",
  code: "forbidden",
  message: "{what} {path} is owned by user ID {uid}; accepted user IDs: {accepted} (plugins.allowedUids)",
  title: "The socket belongs to a user that is not trusted",
  cause: "Sockets of plugins belong to root, to the agent's own user, or to a user of `plugins.allowedUids`.",
  remedy:
    "Run the plugin as one of these users, or add its user ID to `plugins.allowedUids`. A trusted plugin decides what the node publishes and which pods are evicted. An agent without CAP_DAC_OVERRIDE, as in the chart's container, also needs the file's permission to connect although it is root: a socket of another user has mode 0660 with group 0, or 0666 in a directory of mode 0750.",
});

export const SocketDirectoryNotTrusted = declareError({
  id: "NK1313",
  code: "forbidden",
  message: "directory {directory} (mode {mode}) is writable by {who}; run chmod go-w on it",
  title: "Other users can change the socket's directory",
  cause:
    "A directory in the socket's path is writable by its group or by all users, who could replace the plugin.",
  remedy: "Remove the permission that the message names (`chmod go-w`), or serve the socket elsewhere.",
});

export const RegistrationIncomplete = declareProblem({
  id: "NK1314",
  title: "The plugin did not complete the registration",
  cause:
    "A call of the handshake failed or had no response in time: the process hangs, is still starting, or serves another protocol on the socket.",
  remedy:
    "Check the plugin's log. The agent retries with backoff; `plugins.infoTimeout` and `plugins.notifyTimeout` are the deadlines.",
});

export const PluginTokenRefused = declareError({
  id: "NK1315",
  code: "unauthenticated",
  title: "The plugin's token is refused",
  cause:
    "`eviction.strict` is enabled, and the plugin has no token or one that the API server does not accept.",
  remedy: "Give the plugin a token of its service account (GetToken), or disable `eviction.strict`.",
});

export const PluginMayNotEvict = declareError({
  id: "NK1316",
  code: "forbidden",
  message: "{account}, the account of {plugin}, may not create pods/eviction{because}",
  title: "The plugin's account may not evict pods",
  cause:
    "`eviction.strict` is enabled, and the account of the plugin's token may not create `pods/eviction`.",
  remedy: "Bind a role with `create` on `pods/eviction` to the account in the message.",
});

export const PluginDirectoryUnreadable = declareProblem({
  id: "NK1317",
  title: "A plugin directory can't be read",
  cause:
    "A directory of `plugins.directories` can't be created or read: permissions are missing, or the path is not mounted.",
  remedy:
    "Correct its owner and mode, and mount it into the agent's container. Plugins in other directories are not affected.",
});

export const PluginDirectorySkipped = declareProblem({
  id: "NK1318",
  title: "Parts of the plugin directories are skipped",
  cause:
    "A directory has more entries, sockets or subdirectories than the agent scans, or a part can't be read.",
  remedy: "Remove unrelated files, or set `plugins.directories` to the directories that plugins use.",
});

export const PluginNotRegistered = declareProblem({
  id: "NK1319",
  title: "A plugin built with the SDK is not registered after 10 s",
  cause:
    "Logged by the plugin, with its directory and the reason: no agent called its socket, the agent did not report an outcome, or it refused the plugin.",
  remedy:
    "Start the agent, or set the plugin's `socketDir` to a directory of the agent's `plugins.directories`. `nodekeeper plugins list` shows the sockets that the agent found and why it refused one.",
});

export const TooManySmallFrames = declareError({
  id: "NK1320",
  code: "exhausted",
  message:
    "the peer sent too many small HTTP/2 frames: more than {atOnce} at once or {perSecond} a second with less than {bytes} bytes each; the connection is closed",
  title: "A peer sent too many small HTTP/2 frames",
  cause:
    "A plugin, or a client of one of the agent's sockets, sent more than 20,000 HTTP/2 frames at once, or 5,000 a second, with less than 32 bytes each. Each frame costs time and memory regardless of its size, so the agent closed the connection.",
  remedy:
    "Correct the plugin: it sends empty messages or pieces of a few bytes in a loop. The agent connects again with backoff. If no operator changed the plugin, treat it as tampering.",
});

export const PluginNameOwned = declareError({
  id: "NK1321",
  code: "conflict",
  message: "the {type} name {name} belongs to user ID {uid}, whose plugin {state}",
  title: "The plugin's name belongs to another user",
  cause:
    "A plugin of another user is registered with this name, or was until recently: a name belongs to the user whose socket registered it until that plugin is lost and its grace period ends (`reporting.pluginGracePeriod`, `devices.wipeDelay` and the driver's claims, `eviction.conditionTransitionPeriod`). Names that differ in the case of letters only belong to one user.",
  remedy:
    "Choose another name. To move a plugin to another user, stop the old one and wait for the end of the grace period, or bind the name to the new user in `plugins.nameOwners`. If no operator started the second plugin, treat it as tampering.",
});

export const PluginNameBound = declareError({
  id: "NK1322",
  code: "forbidden",
  message:
    "the name {name} is bound to user ID {owner} (plugins.nameOwners); the plugin's socket belongs to user ID {uid}",
  title: "The plugin's name is bound to another user",
  cause: "`plugins.nameOwners` binds the name to a user, and the plugin's socket belongs to another one.",
  remedy: "Run the plugin as that user, or correct `plugins.nameOwners`.",
});

export const PluginShareUsed = declareError({
  id: "NK1323",
  code: "exhausted",
  message: "{who} has {count} registered plugins; its share is half of plugins.maxPlugins ({limit})",
  title: "A user or a directory has too many plugins",
  cause:
    "A user other than root, or a subdirectory of a plugin directory, already has half of `plugins.maxPlugins` registered. The rest is reserved for other users and directories.",
  remedy: "Stop plugins of that user or directory that are not needed, or raise `plugins.maxPlugins`.",
});

export const GracePeriodCut = declareProblem({
  id: "NK1324",
  title: "The grace period of a lost plugin ended early",
  cause:
    "Many plugins of one user or directory registered and disconnected. The state kept for lost plugins is bounded: if a user or directory has too many, the plugins lost first are dropped; see `plugins.maxPlugins`.",
  remedy:
    "Find the process that keeps registering new names: the log line has its user and directory. Plugins of other users and directories are not affected.",
});
