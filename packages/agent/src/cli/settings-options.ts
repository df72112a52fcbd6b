import { hostname } from "node:os";
import { settings } from "@nodekeeper/api/settings";
import { type Command, Option } from "commander";
import type { ConfigurationSources } from "../config/index.ts";

/** Adds `--config` and one option for each setting that has a flag, in groups by section. */
export function addConfigurationOptions(command: Command): Command {
  command.option("--config <file>", "configuration file (AgentConfiguration, YAML)");
  for (const { flagName, placeholder, about, initial, envNames, section } of settings) {
    if (!flagName) continue;
    const shown = Array.isArray(initial) ? initial.join(",") : String(initial);
    const facts = [
      shown === "" ? undefined : `default: ${shown}`,
      envNames.length > 0 ? `env: ${envNames.join(", ")}` : undefined,
    ];
    const notes = facts.filter((fact) => fact !== undefined).join("; ");
    const flags = placeholder ? `--${flagName} ${placeholder}` : `--${flagName}`;
    const option = new Option(flags, notes ? `${about} (${notes})` : about);
    if (section.path !== "") option.helpGroup(wrapped(`${section.path}: ${section.about}`));
    command.addOption(option);
  }
  return command;
}

// commander does not wrap headings.
function wrapped(text: string): string {
  return text.replace(/(.{1,78})(?: |$)/g, "$1\n").trimEnd();
}

/** Returns the configuration sources of this process: command line options, environment and host name. */
export function configurationSources(options: Record<string, unknown>): ConfigurationSources {
  const { config, ...flags } = options;
  return {
    ...(typeof config === "string" ? { file: config } : {}),
    flags,
    env: process.env,
    hostname: hostname(),
  };
}
