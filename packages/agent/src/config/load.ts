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
import { type FileContent, type GivenValue, parseConfigurationText, readConfigurationFile } from "./file.ts";
import { lastGoodPath, readLastGood } from "./last-good.ts";
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
  /** Text of the file. Undefined without a file. */
  text: string | undefined;
}

/**
 * Loads the configuration. Flags override environment variables, which override the file, which overrides defaults.
 * Throws ConfigurationError (code `invalid`) with all problems of all sources.
 */
export async function loadConfiguration(sources: ConfigurationSources): Promise<LoadedConfiguration> {
  return accepted(evaluate(sources, await contentOf(sources)));
}

/**
 * Loads the configuration at startup. If the file is rejected, the text of this file with which the last agent ran is
 * used instead, and `refused` contains the problems. Throws as `loadConfiguration` does if the state directory has no
 * such text, or if the configuration is rejected with it, too.
 */
export async function loadConfigurationForStart(
  sources: ConfigurationSources,
): Promise<LoadedConfiguration & { refused?: ConfigurationError }> {
  const content = await contentOf(sources);
  const given = evaluate(sources, content);
  const { file } = sources;
  if (given.problems.length === 0 || file === undefined) return accepted(given);
  // The valid settings of a refused configuration are known.
  const { stateDir } = given.configuration;
  const { text, damage } = readLastGood(stateDir, file);
  const source = lastGoodPath(stateDir);
  const notUsed = (why: string, problems: readonly Problem[] = []) => {
    const message = `the last good configuration is not used: ${why}`;
    given.problems.push({ source, path: "", message }, ...problems);
  };
  if (text !== undefined) {
    const kept = evaluate(sources, parseConfigurationText(text, source));
    if (kept.problems.length === 0)
      return { ...accepted(kept), refused: new ConfigurationError(given.problems) };
    // `given.problems` already has those of flags and variables.
    const own = kept.problems.filter((problem) => problem.source.startsWith(source));
    if (own.length > 0) notUsed("it is refused too", own);
  }
  if (damage !== undefined) notUsed(damage);
  else if (text === undefined && content && hidesStateDir(content, given)) {
    const message =
      "the last good configuration was looked for in this default state directory only, because the stateDir of the refused file can't be read";
    given.problems.push({ source, path: "", message });
  }
  return accepted(given);
}

/** Whether the refused file may name a state directory that can't be known. */
function hidesStateDir(content: FileContent, { origins, problems }: Evaluated): boolean {
  const origin = origins.get("stateDir");
  if (origin !== undefined)
    return problems.some(
      ({ path, source }) =>
        path === "stateDir" && source === origin && source === content.values.get(path)?.source,
    );
  // A file that was read but not parsed.
  return (
    content.text !== undefined && content.problems.some(({ path }) => path === "" || path === "stateDir")
  );
}

async function contentOf({ file }: ConfigurationSources): Promise<FileContent | undefined> {
  return file === undefined ? undefined : await readConfigurationFile(file);
}

/** A configuration with its problems. Settings whose value is invalid have their default. */
interface Evaluated extends Omit<LoadedConfiguration, "warnings"> {
  problems: Problem[];
}

function accepted({ problems, ...loaded }: Evaluated): LoadedConfiguration {
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { ...loaded, warnings: warningsAbout(loaded.configuration) };
}

function evaluate(sources: ConfigurationSources, file: FileContent | undefined): Evaluated {
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
  return { configuration, origins, problems, text: file?.text };
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
