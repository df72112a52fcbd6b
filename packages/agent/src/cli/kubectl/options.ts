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
    .addOption(namespaceOption("namespace of pods (default: the context's)"))
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
