import type { ArchivedNodeExplanation } from "@nodekeeper/api/archive";
import type { NodeExplanation, PodExplanation } from "@nodekeeper/api/records";
import type { Command } from "commander";
import type { AgentConnection } from "../agent-connection.ts";
import type { Sourced } from "../answer-source.ts";
import type { RecordSource } from "../eviction/record-source.ts";
import type { Fleet } from "../fleet.ts";
import type { Output } from "../output.ts";

/** What commands get besides their options. */
export interface CommandContext {
  output: Output;
  /** Makes the process exit with status 1 although the command completed, because a check failed. */
  fail(): void;
  agents: AgentAccess;
}

// biome-ignore lint/suspicious/noExplicitAny: options as commander parsed them
export type Options = Record<string, any>;

/**
 * How the commands of a program reach agents: `nodekeeper` connects to one at an address, `kubectl nodekeeper` to those
 * of any node through kubectl. The commands are the same.
 */
export interface AgentAccess {
  /** Adds the options that select the agent. */
  addOptions(command: Command): Command;
  /** Adds the same options for commands that read eviction records, which may be in files. */
  addRecordOptions(command: Command): Command;
  /** Adds the argument for the node, if the program reaches several agents. See `optionsWithNode`. */
  addNodeArgument(command: Command): Command;
  /** Adds `-n` for a pod named without its namespace. */
  addPodOptions(command: Command): Command;
  /** Adds `-n` and `-A` to a command that lists pods or what belongs to them. */
  addNamespaceOptions(command: Command): Command;
  /** Connects to the agent that the options select. Throws if they select none or it is unreachable. */
  connect(options: Options): Promise<AgentConnection>;
  /** Opens the records that the options select. */
  openRecords(options: Options): Promise<RecordSource>;
  /**
   * Returns what is recorded about a pod, by the agent of the node that it is or was on, or by the archive. Throws
   * `notFound`.
   * @param pod as the user names it
   */
  explainPod(options: Options, pod: string): Promise<Sourced<PodExplanation>>;
  /** Returns what is recorded about the node that the options select. Throws `notFound`. */
  explainNode(options: Options): Promise<Sourced<NodeExplanation | ArchivedNodeExplanation>>;
  /** Returns the namespace that the options select; undefined for all. */
  namespaceOf(options: Options): Promise<string | undefined>;
  /** Returns the namespace of a pod named without one. */
  defaultNamespace(options: Options): Promise<string>;
  /** Returns all agents. Undefined if the program reaches only one or the options select one. */
  fleet(options: Options): Fleet | undefined;
  /** Description of `status`. */
  readonly statusDescription: string;
}
