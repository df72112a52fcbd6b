import { NodekeeperError, type ScopedSignal } from "@nodekeeper/core/lib";
import { type Command, Option } from "commander";
import type { CommandRun } from "../follow.ts";
import { type Output, pageFormats, tableFormats } from "../output.ts";
import type { Options } from "./context.ts";

/** `-o` of a command that prints a page of text or lines of text. */
export function pageFormatOption(): Option {
  return new Option("-o, --output <format>", "output format").choices(pageFormats).default("text");
}

/** `-o` of a command that prints a table. */
export function tableFormatOption(): Option {
  return new Option("-o, --output <format>", "output format").choices(tableFormats).default("table");
}

/**
 * Returns the options of a command and its program, with the node if it is given as an argument:
 * `AgentAccess.addNodeArgument`.
 */
export function optionsWithNode(command: Command): Options {
  const [node] = command.args;
  return { ...command.optsWithGlobals(), ...(node === undefined ? {} : { node }) };
}

/** `-n` */
export function namespaceOption(about: string): Option {
  return new Option("-n, --namespace <name>", about);
}

/** `-A`, which overrides `-n`. */
export function allNamespacesOption(about: string): Option {
  return new Option("-A, --all-namespaces", about);
}

/** Returns what a command that may keep running needs besides the agent. Dispose it when the command has ended. */
export async function commandRun(output: Output): Promise<CommandRun & Disposable> {
  const { systemClock } = await import("@nodekeeper/core/lib");
  return { output, clock: systemClock, ...(await signals()) };
}

/** Returns a scope that SIGINT and SIGTERM abort. The process exits when the reader of the output closes it. */
export async function signals(): Promise<ScopedSignal> {
  return (await import("../stop-on-signals.ts")).stopWithReader();
}

/** Parses a positive integer. Throws `invalid`, naming the option. */
export function countOf(text: string, option: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new NodekeeperError("invalid", `${option} must be a whole number of at least 1; got "${text}"`);
}
