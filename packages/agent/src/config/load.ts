import { posix } from "node:path";
import {
  type AgentConfiguration,
  assemble,
  isNodeName,
  readLeaf,
  type Setting,
  wrongValue,
} from "@nodekeeper/api/settings";
import { isLoopback } from "@nodekeeper/core/lib";
import { type GivenValue, readConfigurationFile } from "./file.ts";
import { ConfigurationError, type Problem } from "./problem.ts";
import { type Environment, variableProblems } from "./variables.ts";

export interface ConfigurationSources {
  /** Path of the YAML file. Undefined if there is none. */
  file?: string;
  /**
   * Parsed command line options by `Setting.optionKey`: strings, or true for flags without a value. Other keys are
   * ignored.
   */
  flags: Readonly<Record<string, unknown>>;
  /** Environment variables. Empty ones count as unset. */
  env: Environment;
  /** Host name of the machine. Default for the node name. */
  hostname: string;
}

export interface LoadedConfiguration {
  configuration: AgentConfiguration;
  /** Valid settings that are probably mistakes, as sentences. */
  warnings: string[];
  /** Source of each setting that differs from the default, by path. */
  origins: ReadonlyMap<string, string>;
}

/**
 * Loads the configuration. Flags override environment variables, which override the file, which overrides defaults.
 * Throws ConfigurationError (code `invalid`) with all problems of all sources.
 */
export async function loadConfiguration(sources: ConfigurationSources): Promise<LoadedConfiguration> {
  const file = sources.file === undefined ? undefined : await readConfigurationFile(sources.file);
  const problems: Problem[] = [...(file?.problems ?? []), ...variableProblems(sources.env)];
  const origins = new Map<string, string>();

  const configuration = assemble((setting) => {
    const given = [
      fromFlag(setting, sources.flags),
      fromEnv(setting, sources.env),
      file?.values.get(setting.path),
    ];
    let winner: unknown;
    // Overridden values are validated too: they take effect once the overriding value is removed.
    for (const candidate of given) {
      if (!candidate) continue;
      const value = readLeaf(setting, candidate.value);
      if (value === undefined) {
        const message = wrongValue(candidate.value, setting.expected);
        problems.push({ source: candidate.source, path: setting.path, message });
      }
      if (!origins.has(setting.path)) {
        origins.set(setting.path, candidate.source);
        winner = value;
      }
    }
    return winner ?? readLeaf(setting, setting.initial);
  });

  if (configuration.nodeName === "") {
    configuration.nodeName = sources.hostname.toLowerCase();
    origins.set("nodeName", "host name");
    if (!isNodeName(configuration.nodeName)) {
      const message = wrongValue(sources.hostname, "the name of a Node object; set --node-name");
      problems.push({ source: "host name", path: "nodeName", message });
    }
  }
  problems.push(...problemsBetween(configuration, origins));
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { configuration, warnings: warningsAbout(configuration), origins };
}

function fromFlag(setting: Setting, flags: ConfigurationSources["flags"]): GivenValue | undefined {
  const given = setting.optionKey === undefined ? undefined : flags[setting.optionKey];
  if (given === undefined) return undefined;
  const value = typeof given === "string" ? setting.fromText(given) : given;
  return { value, source: `flag --${setting.flagName}` };
}

function fromEnv(setting: Setting, env: ConfigurationSources["env"]): GivenValue | undefined {
  for (const name of setting.envNames) {
    const text = env[name];
    if (text !== undefined && text !== "") return { value: setting.fromText(text), source: `env ${name}` };
  }
  return undefined;
}

// Validates combinations of settings.
function problemsBetween(configuration: AgentConfiguration, origins: ReadonlyMap<string, string>): Problem[] {
  const problem = (path: string, message: string): Problem[] => [
    { source: origins.get(path) ?? "default", path, message },
  ];
  return [...serverProblems(configuration, problem), ...directoryProblems(configuration, problem)];
}

type ProblemOf = (path: string, message: string) => Problem[];

function serverProblems({ server }: AgentConfiguration, problem: ProblemOf): Problem[] {
  const { tlsCertFile, tlsPrivateKeyFile, address, remoteAddress } = server;
  if (!tlsCertFile !== !tlsPrivateKeyFile) {
    const missing = tlsCertFile ? "server.tlsPrivateKeyFile" : "server.tlsCertFile";
    return problem(missing, "missing: tlsCertFile and tlsPrivateKeyFile must be set together");
  }
  if (remoteAddress && isLoopback(hostOf(remoteAddress)))
    return problem(
      "server.remoteAddress",
      `${remoteAddress} is on loopback: expected an address that other machines reach, or empty`,
    );
  if (tlsCertFile) return [];
  const files = "server.tlsCertFile and server.tlsPrivateKeyFile";
  const reachable = (at: string) => `${at} is reachable from other machines`;
  if (!isLoopback(hostOf(address)))
    return problem("server.address", `${reachable(address)}: expected a loopback address, or ${files}`);
  if (remoteAddress) return problem("server.remoteAddress", `${reachable(remoteAddress)}: expected ${files}`);
  return [];
}

// In a shared directory, the agent would discover its own sockets, and the kubelet those of the agent's plugins.
function directoryProblems({ plugins, devices }: AgentConfiguration, problem: ProblemOf): Problem[] {
  const { enabled, registryDirectory } = devices.kubeletPlugin;
  if (!enabled) return [];
  const overlapping = plugins.directories.find(
    (directory) => contains(directory, registryDirectory) || contains(registryDirectory, directory),
  );
  if (overlapping === undefined) return [];
  return problem(
    "plugins.directories",
    `${overlapping} overlaps with devices.kubeletPlugin.registryDirectory (${registryDirectory}): the agent's plugins and the kubelet's must be in separate directories`,
  );
}

function contains(directory: string, path: string): boolean {
  return !posix.relative(directory, path).startsWith("..");
}

function warningsAbout({ server }: AgentConfiguration): string[] {
  const warnings: string[] = [];
  if (server.tlsCertFile !== "" && server.remoteAddress === "" && isLoopback(hostOf(server.address)))
    warnings.push(`server.tlsCertFile is not used: server.address ${server.address} is on loopback.`);
  return warnings;
}

function hostOf(address: string): string {
  return address.slice(0, address.lastIndexOf(":"));
}
