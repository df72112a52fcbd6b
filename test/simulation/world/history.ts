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
  /** Whether it arrived after the agent had given it up, by its deadline or by its death. */
  isLate: boolean;
  /** Whether the response has reached the agent. */
  isDelivered: boolean;
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
  /** Requests of the agent to the API server that were lost, or whose responses were. */
  readonly lost: { at: number; url: string }[] = [];
  /** How far each container and sandbox has come, by ID. */
  readonly stages = new Map<string, Stage>();
  /** Virtual milliseconds at which an agent was started, killed or stopped. */
  readonly lives: {
    startedAt: number;
    endedAt: number | undefined;
    how: "killed" | "stopped" | "failed" | undefined;
  }[] = [];
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
  return write.client === "nodekeeper" && isAccepted(write) && endsPod(write);
}

function isAccepted({ status }: ApiWrite): boolean {
  return status >= 200 && status < 300;
}

function endsPod({ method, path, body }: ApiWrite): boolean {
  if (isDryRun(body)) return false;
  if (method === "POST") return /\/pods\/[^/]+\/eviction$/.test(path);
  return method === "DELETE" && /\/pods\/[^/]+$/.test(path);
}

function isDryRun(body: unknown): boolean {
  const { deleteOptions, dryRun } = (body ?? {}) as {
    deleteOptions?: { dryRun?: string[] };
    dryRun?: string[];
  };
  return (deleteOptions?.dryRun ?? dryRun ?? []).length > 0;
}
