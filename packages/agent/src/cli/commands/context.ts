import type { Command } from "commander";
import type { PodExplanation } from "../../eviction/index.ts";
import type { AgentConnection } from "../agent-connection.ts";
import type { RecordSource } from "../eviction/record-source.ts";
import type { Fleet } from "../fleet.ts";
import type { Output } from "../output.ts";
import type { PodName } from "../pod-name.ts";

/** What commands are given beside their options. */
export interface CommandContext {
  output: Output;
  /** Has the process exit with 1 although the command came to its end: a check failed. */
  fail(): void;
  agents: AgentAccess;
}

// biome-ignore lint/suspicious/noExplicitAny: options as commander parsed them
export type Options = Record<string, any>;

/**
 * How the commands of a program reach agents: `nodekeeper` asks one at an address, `kubectl nodekeeper` those of any node
 * through kubectl. The commands are the same.
 */
export interface AgentAccess {
  /** Adds the options that name the agent. */
  addOptions(command: Command): Command;
  /** The same for commands that read records of eviction, which may lie in files. */
  addRecordOptions(command: Command): Command;
  /** Adds the argument that names the node, where the program reaches several: `optionsWithNode`. */
  addNodeArgument(command: Command): Command;
  /** Adds `-n` for a pod that is named without its namespace. */
  addPodOptions(command: Command): Command;
  /** Adds `-n` and `-A` to a command that lists what belongs to pods. */
  addNamespaceOptions(command: Command): Command;
  /** The agent that the options name. Throws where they name none, or it can't be reached. */
  connect(options: Options): Promise<AgentConnection>;
  /** The source of records that the options name. */
  openRecords(options: Options): Promise<RecordSource>;
  /** What is recorded about a pod, by the agent of the node that it is or was on. Throws `notFound`. */
  explainPod(options: Options, pod: PodName): Promise<PodExplanation>;
  /** The namespace of pods that the options select; undefined for all. */
  namespaceOf(options: Options): Promise<string | undefined>;
  /** The namespace of a pod that is named without one. */
  defaultNamespace(options: Options): Promise<string>;
  /** All agents; undefined where the program reaches one, or the options name one. */
  fleet(options: Options): Fleet | undefined;
  /** What `status` is about. */
  readonly statusDescription: string;
}
