import { type Command, Option } from "commander";
import { httpConnection } from "./agent-connection.ts";
import type { AgentAccess, Options } from "./commands/context.ts";
import { allNamespacesOption, namespaceOption } from "./commands/options.ts";
import { agentRecords } from "./eviction/agent-records.ts";
import { parsePodName, podText } from "./pod-name.ts";

const DEFAULT_SERVER = "127.0.0.1:10290";

/** How `nodekeeper` reaches the agent: at the address from the flag, the environment, or the default. */
export const localAccess: AgentAccess = {
  addOptions: addServerOption,
  addRecordOptions: (command) =>
    addServerOption(command).option(
      "--from <path>",
      "read from a state directory (the agent may be stopped) or from output of `rounds --records`, instead of an agent",
    ),
  connect,
  openRecords,
  async explainPod(options, pod) {
    const name = parsePodName(pod, await localAccess.defaultNamespace(options));
    using source = await openRecords(options);
    return { answer: await source.explainPod(podText(name)) };
  },
  async explainNode(options) {
    using source = await openRecords(options);
    return { answer: await source.explainNode() };
  },
  addNodeArgument: (command) => command,
  addPodOptions: (command) =>
    command.addOption(namespaceOption("namespace of a pod named without one (default: default)")),
  addNamespaceOptions: (command) =>
    command
      .addOption(namespaceOption("only pods in this namespace"))
      .addOption(allNamespacesOption("pods in all namespaces (default)")),
  namespaceOf: async ({ namespace, allNamespaces }) => (allNamespaces ? undefined : namespace),
  fleet: () => undefined,
  statusDescription:
    "print a summary of the agent's state: health, plugins, refused content, evictions in the last hour",
  defaultNamespace: async ({ namespace }) => namespace ?? "default",
};

function addServerOption(command: Command): Command {
  return command.addOption(
    new Option("--server <host:port>", "address of the agent's status server")
      .env("NODEKEEPER_SERVER_ADDRESS")
      .default(DEFAULT_SERVER)
      // An empty variable counts as unset.
      .argParser((server) => server || DEFAULT_SERVER),
  );
}

async function connect({ server }: Options) {
  // Imported on demand: commands without an agent do not need the settings.
  const { checkVariables } = await import("../config/index.ts");
  checkVariables(process.env);
  return httpConnection({
    address: server,
    name: `agent at ${server}`,
    advice: "Check that it is running and that --server is its status server's address",
  });
}

async function openRecords(options: Options) {
  if (options.from === undefined) return agentRecords(await connect(options));
  // Imported on demand: other commands do not need the database.
  return await (await import("./eviction/stored-records.ts")).openStoredRecords(options.from);
}
