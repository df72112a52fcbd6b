import { type Clock, NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { Churn } from "./churn.ts";
import type { SimulatedCri } from "./cri-server.ts";
import type { EventFaults, EventMode } from "./event-stream.ts";
import { type FaultRule, faultsOf } from "./fault-rules.ts";
import type { AdmittedPod, ScenarioPlayer } from "./scenario-player.ts";

/** Commands of the standalone program, one per line. */
export type Command =
  /** Replaces the faults of calls. Empty: no faults. */
  | { op: "faults"; faults: readonly FaultRule[] }
  /** Sets the behavior of GetContainerEvents for new subscriptions, and the faults of further events. */
  | { op: "events"; mode?: EventMode; faults?: EventFaults }
  /** Restarts one container in each of `pods` pods at once. */
  | { op: "change"; pods: number }
  /** Restarts containers at a constant rate. The response is sent at the end. */
  | { op: "play"; perSecond: number; seconds: number }
  /** Sets the speed of the scenario. */
  | { op: "pace"; pace: number }
  /** Stops the runtime for this time, then starts it again with the same containers. */
  | { op: "restart"; awayMs?: number }
  | { op: "admit"; pod: AdmittedPod }
  | { op: "remove"; uid: string; gracePeriodSeconds: number };

export interface CommandsOptions {
  cri: SimulatedCri;
  churn: Churn;
  player: ScenarioPlayer;
  clock: Clock;
}

const eventModes: readonly string[] = ["on", "unimplemented", "disabled"] satisfies EventMode[];

/**
 * Runs a command given as a line of JSON. Resolves when it is done. Throws `invalid` if the line is not a command.
 * Commands run concurrently.
 */
export async function runCommand(line: string, options: CommandsOptions, signal: AbortSignal): Promise<void> {
  const { cri, churn, player, clock } = options;
  const command = parseCommand(line);
  switch (command.op) {
    case "faults":
      cri.faults = faultsOf(command.faults);
      return;
    case "events":
      cri.events = command.mode ?? cri.events;
      cri.eventFaults = command.faults ?? cri.eventFaults;
      return;
    case "change":
      return churn.change(command.pods);
    case "play":
      return await churn.play(command.perSecond, command.seconds, signal);
    case "pace":
      player.pace = command.pace;
      return;
    case "restart":
      return await cri.restart(() => clock.sleep(command.awayMs ?? 0, signal));
    case "admit":
      return player.admit(command.pod);
    case "remove":
      return await player.removePod(command.uid, command, signal);
  }
}

function parseCommand(line: string): Command {
  let command: Partial<Record<string, unknown>> | null;
  try {
    command = JSON.parse(line);
  } catch (error) {
    throw new NodekeeperError("invalid", `not a line of JSON: ${quote(line)}`, { cause: error });
  }
  const op = command?.op;
  const fields = requiredFields[op as Command["op"]];
  if (!command || !fields) throw new NodekeeperError("invalid", `op ${quote(String(op))} is none of ${ops}`);
  for (const [field, isRight] of Object.entries(fields)) {
    if (!isRight(command[field])) {
      throw new NodekeeperError("invalid", `${String(op)}: ${field} is missing or out of range`);
    }
  }
  return command as unknown as Command;
}

type Check = (value: unknown) => boolean;
const isPositive: Check = (value) => typeof value === "number" && value > 0 && value <= 1e6;
const isAmount: Check = (value) => value === 0 || isPositive(value);
const isText: Check = (value) => typeof value === "string" && value !== "";

const requiredFields: Record<Command["op"], Record<string, Check>> = {
  faults: { faults: Array.isArray },
  events: { mode: (value) => value === undefined || eventModes.includes(value as string) },
  change: { pods: isAmount },
  play: { perSecond: isPositive, seconds: isPositive },
  pace: { pace: isPositive },
  restart: { awayMs: (value) => value === undefined || isAmount(value) },
  admit: {
    pod: (value) => {
      const pod = value as Partial<AdmittedPod> | undefined;
      return [pod?.uid, pod?.name, pod?.namespace].every(isText) && Array.isArray(pod?.containers);
    },
  },
  remove: { uid: isText, gracePeriodSeconds: isAmount },
};
const ops = Object.keys(requiredFields).join(", ");
