import type { Process } from "../machine/process.ts";

/** A thing that happened in the world, for the trace. */
export interface Event {
  /** Virtual milliseconds since the start. */
  at: number;
  /** Who did it: a process, or "fault". */
  who: string;
  what: string;
}

/** A request that the API server has answered. */
export interface ApiWrite {
  at: number;
  /** The agent of the node, that of another node, or another client. */
  client: "nodekeeper" | "nodekeeper elsewhere" | "other";
  sender: Process;
  method: string;
  path: string;
  body: unknown;
  status: number;
  /** UID of the pod that a request about a pod concerned, when it arrived. */
  podUid: string | undefined;
  /** Whether it asked for a dry run, which writes nothing: by its query or its body. */
  isDryRun: boolean;
  /** Whether it arrived after the agent had given it up, by its deadline or by its death. */
  isLate: boolean;
  /** Virtual milliseconds at which all of the response had reached the agent. Undefined if it has not. */
  deliveredAt: number | undefined;
  /** Whether a PodDisruptionBudget allowed no disruption. */
  isRefusedByBudget: boolean;
}

/** A call of the agent to an eviction plugin that has reached the plugin. */
export interface PluginCall {
  at: number;
  plugin: string;
  method: "GetEvictPods" | "ThresholdMet" | "GetTopEvictionPods";
  /** Number of the plugin's instance that was called. */
  instance: number;
  /** Most pods that the agent asked for; 0 if there is no limit. */
  topN: number;
  /** What the plugin answered, as text. Undefined if it has not answered, or failed. */
  answer: string | undefined;
  /** Virtual milliseconds at which the plugin answered. */
  answeredAt: number | undefined;
  /** Grace period of the threshold in the answer to ThresholdMet, seconds. */
  graceSeconds: number;
}

/** A StopContainer of the agent that the runtime has got. */
export interface ContainerStop {
  at: number;
  /** Virtual milliseconds at which the call arrived. It may be served later. */
  calledAt: number;
  podUid: string;
  podName: string;
  /** ID of the container. */
  id: string;
  /** Of the agent that called. */
  life: AgentLife;
  timeoutSeconds: number;
  /** Virtual milliseconds at which the container was started. */
  startedAt: number;
  /** Whether the container ran, and got SIGTERM from this call or an earlier one. */
  isSignalled: boolean;
  /** IDs of the pod's containers that ran. */
  running: readonly string[];
  /** Whether it arrived after the end of its agent. */
  isLate: boolean;
  /** Virtual milliseconds at which the container exited by that, or while the call was waiting for it. */
  exitedAt: number | undefined;
  /** Virtual milliseconds at which the call was answered. Undefined if it was not, or failed. */
  answeredAt: number | undefined;
}

/** An eviction of the agent: a request that the API server accepted, or calls of StopContainer for a pod. */
export interface Eviction {
  at: number;
  /** Virtual milliseconds at which it arrived at whoever served it. */
  calledAt: number;
  podUid: string;
  podName: string;
  /** What it was, for messages. */
  what: string;
  isLate: boolean;
  /** The request. Undefined if containers are stopped. */
  write: ApiWrite | undefined;
}

/** An eviction that stops containers. It may go on with further calls. */
export interface StopEviction extends Eviction {
  stops: ContainerStop[];
}

/** The life of an agent, in virtual milliseconds. A process that waits for its turn again has several. */
export interface AgentLife {
  process: Process;
  startedAt: number;
  /** When its configuration was read. */
  configuredAt: number;
  /** When it had the state directory. Undefined if it has not. */
  activeSince: number | undefined;
  endedAt: number | undefined;
  how: "killed" | "stopped" | "failed" | undefined;
}

/** A pod of those that a plugin was offered, which it named in its answer. */
interface Naming {
  at: number;
  plugin: string;
  uid: string;
  call: PluginCall;
}

/** A pod that a plugin named although it was not offered it, or not under these names. */
export interface FalseNaming {
  at: number;
  plugin: string;
  uid: string;
}

/** What a container or sandbox goes through, in this order. */
const stages = ["created", "running", "exited", "removed"] as const;
export type Stage = (typeof stages)[number];

export function isBefore(one: Stage, other: Stage): boolean {
  return stages.indexOf(one) < stages.indexOf(other);
}

// An agent that runs for this long after the disk is writable again has written all that it kept in memory: it retries
// every 5 s (`RETRY_MS` in state/write-behind.ts).
export const REWRITTEN_MS = 6_000;

/** What really happened: the truth that rules compare statements and effects with. */
export class History {
  readonly events: Event[] = [];
  readonly writes: ApiWrite[] = [];
  /** Calls of StopContainer, in order. */
  readonly stops: ContainerStop[] = [];
  readonly stopEvictions: StopEviction[] = [];
  readonly namings: Naming[] = [];
  readonly falseNamings: FalseNaming[] = [];
  readonly pluginCalls: PluginCall[] = [];
  /** When plugins stopped for a while right after their start, before they were registered. */
  readonly slowStarts: { plugin: string; at: number }[] = [];
  /**
   * When plugins had none of the services the agent calls: from the start of the first such process until the
   * start of one that has them.
   */
  readonly withoutServices: { plugin: string; from: number; to: number }[] = [];
  /** When instances of eviction plugins learned that the agent had registered them, in order. */
  readonly registrations: { at: number; plugin: string; instance: number }[] = [];
  /** Requests of the agent to the API server that were lost, or whose responses were. */
  readonly lost: { at: number; method: string; url: string }[] = [];
  /** How far each container and sandbox has come, by ID. */
  readonly stages = new Map<string, Stage>();
  /** When each container and sandbox exited, by ID, in virtual milliseconds. */
  readonly exits = new Map<string, number>();
  /** Agents, oldest first. A second agent is one from when it has the state directory. */
  readonly lives: AgentLife[] = [];
  /**
   * When the machine was booted, and the time of the agent's last commit that survived that, both in virtual
   * milliseconds.
   */
  readonly boots: { at: number; keptUntil: number }[] = [];
  /** When the disk was full, in virtual milliseconds. */
  readonly full: { from: number; to: number }[] = [];
  /** When the state directory was read-only, in virtual milliseconds. */
  readonly readOnly: { from: number; to: number }[] = [];
  /** When the API server refused all requests of the agent, in virtual milliseconds. */
  readonly apiOutages: { from: number; to: number }[] = [];
  /** When the runtime did not answer: it was frozen, or down between two processes. In virtual milliseconds. */
  readonly runtimeOutages: { from: number; to: number }[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  note(who: string, what: string): void {
    this.events.push({ at: this.#now(), who, what });
  }

  addRuntimeOutage(durationMs: number): void {
    this.runtimeOutages.push({ from: this.#now(), to: this.#now() + durationMs });
  }

  /**
   * The periods of which an agent may have recorded nothing on the disk, because it was read-only when the agent was
   * started, or until shortly before it ended. What an agent could not write it keeps in memory.
   */
  get unwritten(): { from: number; to: number }[] {
    return this.lives.flatMap(({ startedAt, endedAt = Number.POSITIVE_INFINITY }) =>
      this.readOnly
        .filter(({ from, to }) => startedAt <= to && endedAt >= from)
        .filter(({ from, to }) => startedAt >= from || endedAt <= to + REWRITTEN_MS)
        .map(({ from }) => ({ from: Math.max(from, startedAt), to: endedAt })),
    );
  }

  /** Records a StopContainer. It begins another eviction of its pod if the last one is certainly over. */
  addStop(stop: ContainerStop): void {
    this.stops.push(stop);
    const { at, calledAt, podUid, podName, isLate, isSignalled, life } = stop;
    if (!isSignalled) return;
    const last = this.stopEvictions.findLast((eviction) => eviction.podUid === podUid);
    if (last && last.stops[0]!.life === life && !this.isConfirmed(last)) last.stops.push(stop);
    else {
      const what = `StopContainer of ${podName}`;
      this.stopEvictions.push({
        at,
        calledAt,
        podUid,
        podName,
        what,
        isLate,
        write: undefined,
        stops: [stop],
      });
    }
  }

  /** Evictions of the agent, in order. */
  get evictions(): Eviction[] {
    const requested = this.writes.flatMap((write): Eviction[] => {
      const { at, podUid, path, isLate } = write;
      if (!isEviction(write) || podUid === undefined) return [];
      return [{ at, calledAt: at, podUid, podName: podNameOf(path), what: path, isLate, write }];
    });
    if (this.stopEvictions.length === 0) return requested;
    const stopped = this.stopEvictions.filter(
      (stop) => !requested.some((request) => this.#goesOn(stop, request)),
    );
    return [...requested, ...stopped].sort((a, b) => a.at - b.at);
  }

  // An eviction goes on with a request to the API server if the operator has changed the killer before it was over.
  #goesOn(stop: StopEviction, { podUid, at }: Eviction): boolean {
    const { life } = stop.stops[0]!;
    const isIts = podUid === stop.podUid && at > stop.at && at <= (life.endedAt ?? Number.POSITIVE_INFINITY);
    return isIts && !this.isConfirmed(stop);
  }

  /** Returns the evictions that have stopped all containers of a pod that they found running. */
  stopped(uid: string): StopEviction[] {
    return this.stopEvictions.filter((eviction) => eviction.podUid === uid && this.#isComplete(eviction));
  }

  /** Returns whether others ended a pod while a StopContainer for it was on its way, which then succeeded. */
  isStoppedLate({ uid, endedAt }: { uid: string; endedAt: number }): boolean {
    return this.#hasCallAt(uid, () => endedAt);
  }

  /** Returns whether a container exited by itself while its StopContainer was on its way, which then succeeded. */
  hasExitedDuringCall(uid: string): boolean {
    return this.#hasCallAt(uid, ({ id, isSignalled }) => (isSignalled ? undefined : this.exits.get(id)));
  }

  #hasCallAt(uid: string, timeOf: (stop: ContainerStop) => number | undefined): boolean {
    return this.stops.some((stop) => {
      const at = timeOf(stop);
      const { podUid, calledAt, answeredAt = 0 } = stop;
      return podUid === uid && at !== undefined && calledAt <= at && answeredAt >= at;
    });
  }

  /** Returns whether all calls of an eviction have succeeded, and all containers that it found running have exited. */
  isConfirmed(eviction: StopEviction): boolean {
    return this.#isComplete(eviction) && eviction.stops.every(({ answeredAt }) => answeredAt !== undefined);
  }

  // A container may exit by itself before its call arrives.
  #isComplete({ stops }: StopEviction): boolean {
    const exits = new Map(stops.map(({ id, exitedAt }) => [id, exitedAt]));
    const last = Math.max(...[...exits.values()].map((at) => at ?? 0));
    return stops[0]!.running.every((id) => {
      if (exits.has(id)) return exits.get(id) !== undefined;
      const exitedAt = this.exits.get(id) ?? Number.POSITIVE_INFINITY;
      return exitedAt <= last || this.stops.some((stop) => stop.id === id && stop.at >= exitedAt);
    });
  }
}

/** Returns the name of a pod, by the path of its eviction. */
export function podNameOf(path: string): string {
  return /\/pods\/([^/]+)/.exec(path)?.[1] ?? path;
}

/** Returns whether the API server has accepted an eviction of the agent. */
export function isEviction(write: ApiWrite): boolean {
  return isAccepted(write) && isEvictionRequest(write);
}

/** Returns whether a request of the agent asks the API server to evict or delete a pod. */
export function isEvictionRequest(write: ApiWrite): boolean {
  return write.client === "nodekeeper" && endsPod(write);
}

function isAccepted({ status }: ApiWrite): boolean {
  return status >= 200 && status < 300;
}

function endsPod({ method, path, isDryRun }: ApiWrite): boolean {
  if (isDryRun) return false;
  if (method === "POST") return /\/pods\/[^/]+\/eviction$/.test(path);
  return method === "DELETE" && /\/pods\/[^/]+$/.test(path);
}

/** Returns whether a request to evict or delete a pod asks for a dry run. */
export function isDryRun(body: unknown): boolean {
  const { deleteOptions, dryRun } = (body ?? {}) as {
    deleteOptions?: { dryRun?: string[] };
    dryRun?: string[];
  };
  return (deleteOptions?.dryRun ?? dryRun ?? []).length > 0;
}
