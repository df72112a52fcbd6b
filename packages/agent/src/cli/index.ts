import { messageOf, NodekeeperError, systemClock } from "@nodekeeper/core/lib";
import { Command, CommanderError } from "commander";
import { keepProcessSmall } from "./memory.ts";
import { type Output, printJson, printMessage, standardOutput } from "./output.ts";
import { addConfigurationOptions } from "./settings-options.ts";
import { packageVersion } from "./version.ts";

const DEFAULT_SOCKET = "/run/nodekeeper/nodekeeper.sock";
const DEFAULT_SERVER = "127.0.0.1:10290";

/**
 * Runs a command line. Returns the exit status: 0 success, 1 failure, 2 wrong usage or configuration.
 * Each command imports its modules when it runs, so that `version` does not load the agent.
 */
export async function runCli(argv: readonly string[], output: Output = standardOutput): Promise<number> {
  let status = 0;
  const program = new Command("nodekeeper")
    .description(
      "Kubernetes node agent: reports node resources, tracks pod lifecycle, publishes devices, and evicts pods under pressure.",
    )
    .version(packageVersion(), "--version", "print the version")
    .showHelpAfterError("(see --help)")
    .exitOverride();

  addConfigurationOptions(program.command("run").description("run the agent")).action(async (options) => {
    keepProcessSmall();
    const { runCommand } = await import("./run.ts");
    await runCommand(options);
  });

  program
    .command("dev")
    .description(
      "run a development cluster: an embedded API server, a simulated container runtime with pods, the agent and sample plugins",
    )
    .option(
      "--data-dir <path>",
      "folder for the cluster's objects and the agent's state (default: a temporary folder)",
    )
    .option("--api-port <port>", "port of the API server on 127.0.0.1 (default: a free one)")
    .option(
      "--server <host:port>",
      "address of the agent's status server (default: a free port on 127.0.0.1)",
    )
    .option("--node-name <name>", "name of the node", "dev-node")
    .option("--no-agent", "do not run the agent; print the command that runs it")
    .option("--no-plugin", "do not run the sample plugins")
    .option("--first-pressure <time>", "delay before the sample eviction plugin first reports pressure", "5s")
    .option("--no-simulated-runtime", "do not simulate a container runtime; discover the machine's own")
    .option("--log-level <level>", "debug, info, warn or error", "info")
    .option("--verbose", "print the agent's log instead of a live line")
    .action(async (options) => {
      const { devCommand } = await import("./dev.ts");
      await devCommand(options, output);
    });

  program
    .command("plugins")
    .description("plugins of the running agent")
    .command("list", { isDefault: true })
    .description("list plugins with their state and the reason for it")
    .option(
      "--server <host:port>",
      "address of the agent's status server",
      process.env.NODEKEEPER_SERVER_ADDRESS ?? DEFAULT_SERVER,
    )
    .option("-o, --output <format>", "table, wide or json", "table")
    .action(async (options) => {
      const { pluginsCommand } = await import("./plugins.ts");
      const format = oneOf(options.output, ["table", "wide", "json"] as const, "--output");
      await pluginsCommand({ server: options.server, format }, output, Date.now());
    });

  addSocketOption(
    program.command("pods").description("list the pods on this node, as reported by the container runtime"),
  )
    .option("-o, --output <format>", "table, wide or json", "table")
    .option("-n, --namespace <name>", "only pods in this namespace")
    .option("-w, --watch", "keep running, and print a pod again when it changes", false)
    .action(async ({ socket, output: given, namespace, watch }) => {
      const { podsCommand } = await import("./pods.ts");
      const format = oneOf(given, ["table", "wide", "json"] as const, "--output");
      await podsCommand({ socket, format, namespace, watch }, output, Date.now, await signals());
    });

  addSocketOption(program.command("events").description("print pod lifecycle events on this node, in order"))
    .option("-o, --output <format>", "text or json", "text")
    .option("-f, --follow", "keep printing new events", false)
    .option("--since <when>", "start this long ago, or at a cursor printed by an earlier run", "1h")
    .option("--pod <namespace/name>", "only events of this pod")
    .action(async ({ socket, output: given, follow, since, pod }) => {
      const { eventsCommand } = await import("./events.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      await eventsCommand({ socket, format, follow, since, pod }, output, Date.now, await signals());
    });

  program
    .command("devices")
    .argument("[driver]", "print only this driver, with its slices and quarantined devices")
    .description("list device drivers, their devices and the ResourceSlices they are published in")
    .option(
      "--server <host:port>",
      "address of the agent's status server",
      process.env.NODEKEEPER_SERVER_ADDRESS ?? DEFAULT_SERVER,
    )
    .option("-o, --output <format>", "table or json", "table")
    .action(async (driver, options) => {
      const { devicesCommand } = await import("./devices.ts");
      const format = oneOf(options.output, ["table", "json"] as const, "--output");
      await devicesCommand({ server: options.server, format, driver }, output, Date.now());
    });

  const explain = program.command("explain").description("explain why a pod was evicted or the node tainted");
  addRecordOptions(
    explain
      .command("pod")
      .argument(
        "<namespace/name>",
        "the pod, or its UID; if several pods had this name, the one that left the node last",
      )
      .description("explain why a pod left the node or was not evicted: the plugin, the ranking, each step"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .action(async (pod, { server, from, output: given }) => {
      const { explainPodCommand } = await import("./eviction/explain.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      await explainPodCommand(pod, { server, from, format }, output);
    });

  addRecordOptions(
    explain
      .command("node")
      .description("explain the conditions and taints set by eviction: plugin, reason, start and end"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .action(async ({ server, from, output: given }) => {
      const { explainNodeCommand } = await import("./eviction/explain.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      await explainNodeCommand({ server, from, format }, output);
    });

  addRecordOptions(
    program.command("rounds").description("list eviction rounds in which something happened, oldest first"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .option("--since <duration>", "start this long ago (default: 1h from an agent, everything from --from)")
    .option("-f, --follow", "keep printing new rounds", false)
    .option(
      "--records",
      "print complete records and pod history as JSON lines, for use with --from on another machine",
      false,
    )
    .action(async ({ server, from, output: given, since, follow, records }) => {
      const { roundsCommand } = await import("./eviction/rounds.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      const options = { server, from, format, since, follow, records };
      await roundsCommand(options, output, systemClock, await signals());
    });

  addRecordOptions(
    program
      .command("replay")
      .description("decide recorded rounds again with another configuration, and print the differences"),
  )
    .requiredOption("--config <file>", "configuration to decide with (AgentConfiguration, YAML)")
    .option("-o, --output <format>", "text or json", "text")
    .option("--since <duration>", "start this long ago (default: 1h from an agent, everything from --from)")
    .action(async ({ server, output: given, from, since, config: file }) => {
      const { replayCommand } = await import("./eviction/replay.ts");
      const { hostname } = await import("node:os");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      // Only the file counts: environment variables of this shell do not change the policy.
      const sources = { file, flags: {}, env: {}, hostname: hostname() };
      await replayCommand({ server, from, format, since, sources }, output, Date.now());
    });

  program
    .command("policy")
    .description("eviction policies in CEL")
    .command("test")
    .argument("<file>", "policy file (YAML)")
    .description(
      "evaluate policies against a node and its pods: thresholds met, eviction order, pods excluded and why",
    )
    .requiredOption(
      "--against <file>",
      "YAML or JSON file with `node` and `pods`, or output of `rounds --records`",
    )
    .option("--readings <file>", "file with `node` and `pods`: readings that recorded rounds do not contain")
    .option("--last <count>", "number of most recent recorded rounds to evaluate", "1")
    .option("--round <id>", "recorded round to evaluate")
    .option("--under-pressure", "assume the threshold was already met before", false)
    .option("-o, --output <format>", "text or json", "text")
    .action(async (policies, { against, readings, last, round, underPressure, output: given }) => {
      const { policyTestCommand } = await import("./policy.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      const rounds = { last: countOf(last, "--last"), round: round && countOf(round, "--round") };
      const options = { policies, against, readings, underPressure, format, ...rounds };
      if (!(await policyTestCommand(options, output, Date.now(), await signals()))) status = 1;
    });

  const config = program.command("config").description("print and validate configurations");
  config
    .command("default")
    .description("print the default configuration with comments")
    .action(async () => (await import("./config.ts")).configDefaultCommand(output));
  config
    .command("schema")
    .description("print the JSON schema of the configuration")
    .action(async () => (await import("./config.ts")).configSchemaCommand(output));
  addConfigurationOptions(
    config
      .command("validate")
      .argument("[file]", "configuration file")
      .option("-o, --output <format>", "text or json", "text")
      .description("load a configuration as `run` does and print every problem"),
  ).action(async (file, options) => {
    oneOf(options.output, ["text", "json"] as const, "--output");
    const { configValidateCommand } = await import("./config.ts");
    await configValidateCommand(file, options, output);
  });

  addConfigurationOptions(
    program
      .command("preflight")
      .option("-o, --output <format>", "text or json", "text")
      .description(
        "check the agent's requirements on this node: kernel, cgroups, folders, API server, permissions",
      ),
  ).action(async (options) => {
    oneOf(options.output, ["text", "json"] as const, "--output");
    const { preflightCommand } = await import("./preflight.ts");
    if (!(await preflightCommand(options, output))) status = 1;
  });

  program
    .command("version")
    .description("print versions")
    .option("-o, --output <format>", "text or json", "text")
    .action(({ output: format }) => {
      const versions = {
        nodekeeper: packageVersion(),
        node: process.version,
        platform: `${process.platform}/${process.arch}`,
      };
      if (format === "json") printJson(output, versions);
      else output.write(`nodekeeper ${versions.nodekeeper} (node ${versions.node}, ${versions.platform})\n`);
    });

  try {
    await program.parseAsync([...argv]);
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    printMessage(messageOf(error));
    return error instanceof NodekeeperError && error.code === "invalid" ? 2 : 1;
  }
}

function addServerOption(command: Command): Command {
  return command.option(
    "--server <host:port>",
    "address of the agent's status server",
    process.env.NODEKEEPER_SERVER_ADDRESS ?? DEFAULT_SERVER,
  );
}

function addRecordOptions(command: Command): Command {
  return addServerOption(command).option(
    "--from <path>",
    "read from a state directory (the agent may be stopped) or from output of `rounds --records`, instead of an agent",
  );
}

function addSocketOption(command: Command): Command {
  return command.option(
    "--socket <path>",
    "path of the agent's API socket",
    process.env.NODEKEEPER_API_SOCKET ?? DEFAULT_SOCKET,
  );
}

async function signals(): Promise<AbortSignal> {
  return (await import("./stop-on-signals.ts")).stopWithReader();
}

function countOf(text: string, option: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new NodekeeperError("invalid", `${option} must be a whole number of at least 1; got "${text}"`);
}

function oneOf<const W extends string>(given: string, words: readonly W[], option: string): W {
  const word = words.find((each) => each === given);
  if (!word)
    throw new NodekeeperError("invalid", `${option} must be one of ${words.join(", ")}; got "${given}"`);
  return word;
}
