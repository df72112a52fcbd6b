import { type Command, Option } from "commander";
import type { Options } from "../commands/context.ts";
import { allNamespacesOption, namespaceOption } from "../commands/options.ts";

// The same flags as kubectl's.
const passedOn: readonly (readonly [flags: string, about: string])[] = [
  ["--context <name>", "kubeconfig context to use"],
  ["--kubeconfig <file>", "path of the kubeconfig"],
  ["--cluster <name>", "kubeconfig cluster to use"],
  ["--user <name>", "kubeconfig user to use"],
  ["--as <user>", "user to impersonate"],
  ["--as-group <group>", "group to impersonate; may be repeated"],
];

/** Adds the options of all commands of `kubectl nodekeeper`, which may precede or follow the command's name. */
export function addClusterOptions(program: Command): void {
  program
    .option("--node <name>", "name of the node")
    .addOption(namespaceOption("namespace of pods (default: the context's; of evictions: all)"))
    .addOption(allNamespacesOption("pods in all namespaces"));
  for (const [flags, about] of passedOn) program.option(flags, about, added);
  program
    .addOption(
      new Option(
        "--agent-namespace <name>",
        "namespace of the agents' pods (default: all namespaces, or nodekeeper without the right to list pods in all)",
      )
        .env("NODEKEEPER_NAMESPACE")
        // An empty variable counts as unset.
        .argParser((namespace) => namespace || undefined),
    )
    .option(
      "--agent-selector <labels>",
      "label selector of the agents' pods",
      "app.kubernetes.io/name=nodekeeper",
    )
    .option("--parallel <count>", "maximum number of agents queried concurrently", "8");
  addArchiveOptions(program);
}

function addArchiveOptions(program: Command): void {
  const option = (flags: string, variable: string, about: string) =>
    new Option(flags, about).env(variable).argParser((text: string) => text || undefined);
  program
    .addOption(
      option(
        "--archive <urls>",
        "NODEKEEPER_ARCHIVE",
        "VictoriaLogs with the records that agents exported, for nodes that are gone; of replicas, all URLs, separated by commas",
      ),
    )
    .addOption(
      option(
        "--archive-ca <file>",
        "NODEKEEPER_ARCHIVE_CA",
        "certificates of the authorities that the archive is checked against (default: Node's)",
      ),
    )
    .addOption(
      option(
        "--archive-headers <file>",
        "NODEKEEPER_ARCHIVE_HEADERS",
        'file with a header of requests to the archive on each line: "Authorization: Bearer ..."',
      ),
    )
    .addOption(
      option(
        "--archive-attributes <list>",
        "NODEKEEPER_ARCHIVE_ATTRIBUTES",
        "only records with these resource attributes: k8s.cluster.name=prod, separated by commas",
      ),
    );
}

/** Returns the flags for each call of kubectl. */
export function kubectlFlags(options: Options): string[] {
  return passedOn.flatMap(([flags]) => {
    const option = new Option(flags);
    const values: string[] = options[option.attributeName()] ?? [];
    return values.map((value) => `${option.long}=${value}`);
  });
}

function added(value: string, earlier: string[] = []): string[] {
  return [...earlier, value];
}
