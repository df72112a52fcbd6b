import { messageOf, NodekeeperError, systemClock } from "@nodekeeper/core/lib";
import { Command, CommanderError } from "commander";
import { keepProcessSmall } from "./memory.ts";
import { type Output, printJson, printMessage, standardOutput } from "./output.ts";
import { addConfigurationOptions } from "./settings-options.ts";
import { packageVersion } from "./version.ts";

const DEFAULT_SOCKET = "/run/nodekeeper/nodekeeper.sock";
const DEFAULT_SERVER = "127.0.0.1:10290";

/**
 * The command line. Answers the exit status: 0 done, 1 failed, 2 wrong usage or configuration.
 * Each command loads what it needs when it runs, so that `version` does not pay for the agent.
 */
export async function runCli(argv: readonly string[], output: Output = standardOutput): Promise<number> {
  let status = 0;
  const program = new Command("nodekeeper")
    .description("Tells what a Kubernetes node has, what runs on it, and why a pod had to go.")
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
      "keep the cluster's objects and the agent's state here (default: a temporary folder)",
    )
    .option("--api-port <port>", "port of the API server on 127.0.0.1 (default: a free one)")
    .option(
      "--server <host:port>",
      "address of the agent's status server (default: a free port on 127.0.0.1)",
    )
    .option("--node-name <name>", "name of the node", "dev-node")
    .option("--no-agent", "without the agent: run it yourself with the command printed")
    .option("--no-plugin", "without the sample plugins")
    .option("--first-pressure <time>", "when the sample eviction plugin first has a pod go", "5s")
    .option(
      "--no-simulated-runtime",
      "without the simulated container runtime: the machine's own is looked for",
    )
    .option("--log-level <level>", "debug, info, warn or error", "info")
    .option("--verbose", "print the agent's log instead of a live line")
    .action(async (options) => {
      const { devCommand } = await import("./dev.ts");
      await devCommand(options, output);
    });

  program
    .command("plugins")
    .description("what plugins the running agent knows")
    .command("list", { isDefault: true })
    .description("list plugins, what state they are in and why")
    .option(
      "--server <host:port>",
      "the agent's status server",
      process.env.NODEKEEPER_SERVER_ADDRESS ?? DEFAULT_SERVER,
    )
    .option("-o, --output <format>", "table, wide or json", "table")
    .action(async (options) => {
      const { pluginsCommand } = await import("./plugins.ts");
      const format = oneOf(options.output, ["table", "wide", "json"] as const, "--output");
      await pluginsCommand({ server: options.server, format }, output, Date.now());
    });

  addSocketOption(
    program.command("pods").description("what runs on this node, as the container runtime tells"),
  )
    .option("-o, --output <format>", "table, wide or json", "table")
    .option("-n, --namespace <name>", "only pods of this namespace")
    .option("-w, --watch", "go on, and print a pod again when something happens to it", false)
    .action(async ({ socket, output: given, namespace, watch }) => {
      const { podsCommand } = await import("./pods.ts");
      const format = oneOf(given, ["table", "wide", "json"] as const, "--output");
      await podsCommand({ socket, format, namespace, watch }, output, Date.now, await signals());
    });

  addSocketOption(
    program.command("events").description("what happened to pods and containers on this node, in order"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .option("-f, --follow", "go on with what is still to come", false)
    .option("--since <when>", "how long ago to begin, or the cursor of an earlier answer", "1h")
    .option("--pod <namespace/name>", "only events of this pod")
    .action(async ({ socket, output: given, follow, since, pod }) => {
      const { eventsCommand } = await import("./events.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      await eventsCommand({ socket, format, follow, since, pod }, output, Date.now, await signals());
    });

  program
    .command("devices")
    .argument("[driver]", "one driver, with its slices and the devices that are held back")
    .description("drivers, the devices they stream, and the ResourceSlices these are published in")
    .option(
      "--server <host:port>",
      "the agent's status server",
      process.env.NODEKEEPER_SERVER_ADDRESS ?? DEFAULT_SERVER,
    )
    .option("-o, --output <format>", "table or json", "table")
    .action(async (driver, options) => {
      const { devicesCommand } = await import("./devices.ts");
      const format = oneOf(options.output, ["table", "json"] as const, "--output");
      await devicesCommand({ server: options.server, format, driver }, output, Date.now());
    });

  const explain = program.command("explain").description("why something happened");
  addRecordOptions(
    explain
      .command("pod")
      .argument(
        "<namespace/name>",
        "the pod, or its UID; of several of one name the newest that left the node",
      )
      .description("why a pod left the node, or was not evicted: by whom, how candidates ranked, each step"),
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
      .description("conditions and taints that eviction sets: by which plugin, why, since when, until when"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .action(async ({ server, from, output: given }) => {
      const { explainNodeCommand } = await import("./eviction/explain.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      await explainNodeCommand({ server, from, format }, output);
    });

  addRecordOptions(
    program.command("rounds").description("the rounds of eviction in which something happened, oldest first"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .option(
      "--since <duration>",
      "how long ago to start (default: 1h of an agent's records, all of a path's)",
    )
    .option("-f, --follow", "go on with those to come", false)
    .option(
      "--records",
      "print whole records and the history of pods as lines of JSON, for --from elsewhere",
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
      .description("decide recorded rounds anew under another configuration, and show what would differ"),
  )
    .requiredOption("--config <file>", "the other configuration (AgentConfiguration, YAML)")
    .option("-o, --output <format>", "text or json", "text")
    .option(
      "--since <duration>",
      "how long ago to start (default: 1h of an agent's records, all of a path's)",
    )
    .action(async ({ server, output: given, from, since, config: file }) => {
      const { replayCommand } = await import("./eviction/replay.ts");
      const { hostname } = await import("node:os");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      // The policy is in the file alone: no variable of this shell changes it.
      const sources = { file, flags: {}, env: {}, hostname: hostname() };
      await replayCommand({ server, from, format, since, sources }, output, Date.now());
    });

  program
    .command("policy")
    .description("eviction policies in CEL")
    .command("test")
    .argument("<file>", "the policies (YAML)")
    .description(
      "say what policies would do with a node and its pods: who is over, who goes first, who stays and why",
    )
    .requiredOption(
      "--against <file>",
      "a YAML or JSON file of `node` and `pods`, or what `rounds --records` wrote",
    )
    .option("--readings <file>", "`node` and `pods` for what recorded rounds do not hold")
    .option("--last <count>", "how many of the last recorded rounds", "1")
    .option("--round <id>", "one recorded round")
    .option("--under-pressure", "as though there had been pressure before", false)
    .option("-o, --output <format>", "text or json", "text")
    .action(async (policies, { against, readings, last, round, underPressure, output: given }) => {
      const { policyTestCommand } = await import("./policy.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      const rounds = { last: countOf(last, "--last"), round: round && countOf(round, "--round") };
      const options = { policies, against, readings, underPressure, format, ...rounds };
      if (!(await policyTestCommand(options, output, Date.now(), await signals()))) status = 1;
    });

  const config = program.command("config").description("look at configurations");
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
      .description("load a configuration as `run` would and say what is wrong with it"),
  ).action(async (file, options) => {
    oneOf(options.output, ["text", "json"] as const, "--output");
    const { configValidateCommand } = await import("./config.ts");
    await configValidateCommand(file, options, output);
  });

  addConfigurationOptions(
    program
      .command("preflight")
      .option("-o, --output <format>", "text or json", "text")
      .description("check what the agent needs here: kernel, cgroups, folders, API server, rights"),
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
    "the agent's status server",
    process.env.NODEKEEPER_SERVER_ADDRESS ?? DEFAULT_SERVER,
  );
}

function addRecordOptions(command: Command): Command {
  return addServerOption(command).option(
    "--from <path>",
    "in place of an agent: a state directory, also with no agent running, or a file that `rounds --records` wrote",
  );
}

function addSocketOption(command: Command): Command {
  return command.option(
    "--socket <path>",
    "the agent's API socket",
    process.env.NODEKEEPER_API_SOCKET ?? DEFAULT_SOCKET,
  );
}

async function signals(): Promise<AbortSignal> {
  return (await import("./stop-on-signals.ts")).stopWithReader();
}

function countOf(text: string, option: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new NodekeeperError("invalid", `${option} must be a number from 1; got "${text}"`);
}

function oneOf<const W extends string>(given: string, words: readonly W[], option: string): W {
  const word = words.find((each) => each === given);
  if (!word)
    throw new NodekeeperError("invalid", `${option} must be one of ${words.join(", ")}; got "${given}"`);
  return word;
}
