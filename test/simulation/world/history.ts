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
  /** First part of the User-Agent: "nodekeeper". */
  client: string;
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
  /** Virtual milliseconds at which the response reached the agent. Undefined if it has not. */
  deliveredAt: number | undefined;
  /** Whether a PodDisruptionBudget allowed no disruption. */
  isRefusedByBudget: boolean;
}

/** A call of the agent to an eviction plugin that has reached the plugin. */
export interface PluginCall {
  at: number;
  plugin: string;
  method: "GetEvictPods" | "ThresholdMet" | "GetTopEvictionPods";
  /** What the plugin answered, as text. Undefined if it has not answered, or failed. */
  answer: string | undefined;
}

/** What a plugin has told the agent about pods in a response that reached it. */
interface Naming {
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

/** What really happened: the truth that rules compare statements and effects with. */
export class History {
  readonly events: Event[] = [];
  readonly writes: ApiWrite[] = [];
  readonly namings: Naming[] = [];
  readonly pluginCalls: PluginCall[] = [];
  /** Requests of the agent to the API server that were lost, or whose responses were. */
  readonly lost: { at: number; method: string; url: string }[] = [];
  /** How far each container and sandbox has come, by ID. */
  readonly stages = new Map<string, Stage>();
  /** Virtual milliseconds at which an agent was started, killed or stopped. */
  readonly lives: {
    startedAt: number;
    endedAt: number | undefined;
    how: "killed" | "stopped" | "failed" | undefined;
  }[] = [];
  /**
   * When the machine was booted, and the time of the agent's last commit that survived that, both in virtual
   * milliseconds.
   */
  readonly boots: { at: number; keptUntil: number }[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  note(who: string, what: string): void {
    this.events.push({ at: this.#now(), who, what });
  }

  /** Evictions of the agent that the API server accepted, in order. */
  get evictions(): (ApiWrite & { podUid: string })[] {
    return this.writes.filter(
      (write): write is ApiWrite & { podUid: string } => isEviction(write) && write.podUid !== undefined,
    );
  }
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
