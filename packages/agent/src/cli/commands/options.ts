import { NodekeeperError } from "@nodekeeper/core/lib";
import { type Command, Option } from "commander";

const DEFAULT_SOCKET = "/run/nodekeeper/nodekeeper.sock";
const DEFAULT_SERVER = "127.0.0.1:10290";

/** `--server`: where the agent's status server is asked. */
export function serverOption(): Option {
  const address = process.env.NODEKEEPER_SERVER_ADDRESS ?? DEFAULT_SERVER;
  return new Option("--server <host:port>", "address of the agent's status server").default(address);
}

/** Adds `--server` and `--from`: where records of eviction are read. */
export function addRecordOptions(command: Command): Command {
  return command
    .addOption(serverOption())
    .option(
      "--from <path>",
      "read from a state directory (the agent may be stopped) or from output of `rounds --records`, instead of an agent",
    );
}

/** Adds `--socket`: where the agent's gRPC API is asked. */
export function addSocketOption(command: Command): Command {
  return command.option(
    "--socket <path>",
    "path of the agent's API socket",
    process.env.NODEKEEPER_API_SOCKET ?? DEFAULT_SOCKET,
  );
}

/** Aborts at SIGINT and SIGTERM, and when the reader of the output has closed it. */
export async function signals(): Promise<AbortSignal> {
  return (await import("../stop-on-signals.ts")).stopWithReader();
}

/** A whole number from 1. Throws `invalid` for anything else, with the option's name. */
export function countOf(text: string, option: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new NodekeeperError("invalid", `${option} must be a whole number of at least 1; got "${text}"`);
}

/** The one of `words` that was given. Throws `invalid` for anything else, with the option's name. */
export function oneOf<const W extends string>(given: string, words: readonly W[], option: string): W {
  const word = words.find((each) => each === given);
  if (!word)
    throw new NodekeeperError("invalid", `${option} must be one of ${words.join(", ")}; got "${given}"`);
  return word;
}
