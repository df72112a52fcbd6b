import { isDeepStrictEqual } from "node:util";
import type { FleetNode, FleetUpdate } from "@nodekeeper/api/fleet";
import { type Clock, messageOf, sleepOrAbort } from "@nodekeeper/core/lib";
import { readNodeStatus } from "../../status/node-status.ts";
import type { ListedNode, PageSource } from "./page-source.ts";
import { readingOf } from "./reading-of.ts";

const TICK_MS = 100;
// Each reading starts a kubectl, which takes about 0.1 s of CPU time.
const SECOND_READING_GAP_MS = 200;
const SHOWN_INTERVAL_MS = 5_000;
const INTERVAL_MS = 60_000;
const LIST_INTERVAL_MS = 60_000;
/** Reading stops this long after the last request of a page. */
const WATCHED_MS = 15_000;

interface Row {
  node: FleetNode;
  /** Of its last change. */
  version: number;
  /** Monotonic time at which its last reading started. Undefined before the first one. */
  startedAt: number | undefined;
}

/** What a page has already, and which nodes it shows. */
export interface PageState {
  epoch: number;
  version: number;
  shown: readonly string[];
}

export interface FleetReaderOptions {
  source: Pick<PageSource, "nodes" | "connect">;
  clock: Clock;
  /** Maximum number of concurrent readings. Each needs a kubectl process. */
  parallel: number;
}

/**
 * Keeps the state of all nodes, as long as a page asks for it.
 *
 * 1. Nodes are listed once a minute, and each agent is read as often as the pace of readings allows: shown nodes every
 *    five seconds, others once a minute. If that is too often for the pace, all are read more rarely, in the same
 *    proportion.
 * 2. At most half of the concurrent readings are of agents that did not answer, or whose node is not ready, which may
 *    take half a minute each.
 */
export class FleetReader {
  readonly #options: FleetReaderOptions;
  readonly #rows = new Map<string, Row>();
  readonly #reading = new Set<string>();
  #epoch = 0;
  #version = 0;
  #listedAt: number | undefined;
  #listDueAt = 0;
  #listing: Promise<void> | undefined;
  #problem: string | undefined;
  #archiveProblem: string | undefined;
  #watchedAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;
  #shown: ReadonlySet<string> = new Set();

  constructor(options: FleetReaderOptions) {
    this.#options = options;
  }

  /** Reads until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      this.#tick(clock.monotonic());
      await sleepOrAbort(clock, TICK_MS, signal);
    }
  }

  /**
   * Lists the nodes. Returns their number, not counting archived ones. Throws if the list failed and no node is known
   * from an earlier list.
   */
  async list(): Promise<number> {
    await this.#list();
    if (this.#problem !== undefined && this.#rows.size === 0) throw new Error(this.#problem);
    return [...this.#rows.values()].filter(({ node }) => !node.archived).length;
  }

  /** Returns what has changed since a page's state, and continues reading for it. */
  update({ epoch, version, shown }: PageState): FleetUpdate {
    this.#watchedAt = this.#options.clock.monotonic();
    this.#shown = new Set(shown);
    const since = epoch === this.#epoch ? version : 0;
    return {
      epoch: this.#epoch,
      version: this.#version,
      nodes: [...this.#rows.values()].filter((row) => row.version > since).map(({ node }) => node),
      ...(this.#listedAt === undefined ? {} : { listedAt: this.#listedAt }),
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
      ...(this.#archiveProblem === undefined ? {} : { archiveProblem: this.#archiveProblem }),
    };
  }

  /** Whether there is a node of this name. */
  has(node: string): boolean {
    return this.#rows.has(node);
  }

  #tick(now: number): void {
    if (now - this.#watchedAt > WATCHED_MS) return;
    if (now >= this.#listDueAt && !this.#listing) void this.#list();
    const node = this.#next(now);
    if (node !== undefined) void this.#read(node, now);
  }

  /** Returns the node that is the most overdue, in proportion to its interval. */
  #next(now: number): string | undefined {
    const { parallel } = this.#options;
    if (this.#reading.size >= parallel) return undefined;
    const silent = [...this.#reading].filter((name) => isSilent(this.#rows.get(name)?.node));
    const mayBeSilent = silent.length < Math.max(1, Math.floor(parallel / 2));
    const isPaced = now - this.#readAt < SECOND_READING_GAP_MS;
    let next: { name: string; overdue: number } | undefined;
    for (const [name, { node, startedAt }] of this.#rows) {
      if (!node.hasAgent || this.#reading.has(name)) continue;
      if (isSilent(node) && !mayBeSilent) continue;
      if (startedAt !== undefined && isPaced) continue;
      const isShown = this.#shown.has(name);
      const interval = isShown ? SHOWN_INTERVAL_MS : INTERVAL_MS;
      // First all that were never read, the shown ones before the others.
      const overdue =
        startedAt === undefined ? (isShown ? Infinity : Number.MAX_VALUE) : (now - startedAt) / interval;
      if (overdue >= 1 && (next === undefined || overdue > next.overdue)) next = { name, overdue };
    }
    return next?.name;
  }

  async #read(name: string, now: number): Promise<void> {
    const { source, clock } = this.#options;
    this.#reading.add(name);
    this.#readAt = now;
    this.#rows.get(name)!.startedAt = now;
    let result: Pick<FleetNode, "reading" | "problem">;
    try {
      using agent = await source.connect(name);
      const status = await readNodeStatus(agent, clock.now());
      result = { reading: readingOf(status, clock.now()) };
    } catch (error) {
      result = { problem: messageOf(error) };
    }
    this.#reading.delete(name);
    const row = this.#rows.get(name);
    // Removed meanwhile.
    if (!row) return;
    const { problem: _, ...node } = row.node;
    this.#change(row, { ...node, ...result });
  }

  async #list(): Promise<void> {
    const { source, clock } = this.#options;
    this.#listing ??= (async () => {
      try {
        const { nodes, archiveProblem } = await source.nodes();
        this.#take(nodes);
        this.#archiveProblem = archiveProblem;
        this.#listedAt = clock.now();
        this.#problem = undefined;
      } catch (error) {
        this.#problem = messageOf(error);
      }
      this.#listDueAt = clock.monotonic() + LIST_INTERVAL_MS;
      this.#listing = undefined;
    })();
    await this.#listing;
  }

  #take(nodes: readonly ListedNode[]): void {
    const names = new Set(nodes.map(({ node }) => node));
    for (const name of this.#rows.keys()) {
      if (names.has(name)) continue;
      this.#rows.delete(name);
      this.#epoch++;
    }
    for (const listed of nodes) {
      const row = this.#rows.get(listed.node);
      if (!row) {
        this.#rows.set(listed.node, { node: listed, version: ++this.#version, startedAt: undefined });
        continue;
      }
      const { reading, problem, ...before } = row.node;
      if (isDeepStrictEqual(before, listed)) continue;
      // The last answer of its agent does not apply to a node that is gone.
      const kept = { ...(reading ? { reading } : {}), ...(problem === undefined ? {} : { problem }) };
      this.#change(row, listed.hasAgent ? { ...listed, ...kept } : listed);
    }
  }

  #change(row: Row, node: FleetNode): void {
    row.node = node;
    row.version = ++this.#version;
  }
}

/** Returns whether the last reading of a node's agent failed, or the Node is not ready, or its readiness is unknown. */
function isSilent(node: FleetNode | undefined): boolean {
  return node?.problem !== undefined || node?.condition === "NotReady" || node?.condition === "Unknown";
}
