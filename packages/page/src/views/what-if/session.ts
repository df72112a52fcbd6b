import type { EvictionPolicy } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { RoundRecord } from "@nodekeeper/api/records";
import { addToReplay, emptyReplay, policyDifferences } from "@nodekeeper/api/replay";
import { Refusal } from "../../api.ts";
import type { FromWorker, ReadFailure, RecordsRead, ReplayResult, ToWorker } from "./messages.ts";

export interface SessionParts {
  /** Reads a page of records. Throws as `ask`. */
  readPage(since: number, after: number, signal: AbortSignal): Promise<ApiAnswers["eviction/records"]>;
  post(message: FromWorker): void;
  /** Yields to the event loop, so that messages arrive. */
  pause(): Promise<void>;
  /** Monotonic time, milliseconds. */
  now(): number;
}

// Rounds are weighed by their pods, about 0.7 KB of JSON each: a batch is at most 35 MB, or one page of larger rounds.
const BATCH_PODS = 50_000;
const MOST_PODS = 4 * BATCH_PODS;
const SLICE_MS = 50;
const RESULTS_EVERY_MS = 1_000;
const PROGRESS_EVERY_MS = 250;

/**
 * Reads recorded rounds in batches and replays them with one policy at a time. The newest request replaces earlier
 * ones.
 */
export class ReplaySession {
  readonly #parts: SessionParts;
  #records: RoundRecord[] = [];
  #pods = 0;
  #since = 0;
  /** Where reading continues. Undefined at the end. */
  #after: number | undefined = 0;
  #tooLarge: RecordsRead["tooLarge"] = [];
  #failure: ReadFailure | undefined;
  #reading: AbortController | undefined;
  /** With the policy sent last. */
  #going: Going | undefined;
  #turn = 0;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** Handles a message. Never rejects. */
  async take(message: ToWorker): Promise<void> {
    switch (message.kind) {
      case "read":
        this.#forget(message.since);
        return this.#readBatch();
      case "readMore":
        // At the end, continues with what has been recorded since.
        this.#after ??= this.#records.at(-1)?.id ?? 0;
        return this.#readBatch();
      case "replay":
        this.#going = start(message.run, message.policy);
        return this.#replay();
      case "resume":
        return this.#replay();
      case "stop":
        this.#turn++;
        this.#reading?.abort();
    }
  }

  #forget(since: number): void {
    this.#reading?.abort();
    this.#turn++;
    this.#records = [];
    if (this.#going) this.#going = start(this.#going.run, this.#going.policy);
    this.#tooLarge = [];
    this.#pods = 0;
    this.#since = since;
    this.#after = 0;
  }

  async #readBatch(): Promise<void> {
    this.#reading?.abort();
    const reading = new AbortController();
    this.#reading = reading;
    this.#failure = undefined;
    const end = Math.min(this.#pods + BATCH_PODS, MOST_PODS);
    this.#postRecords();
    try {
      while (this.#after !== undefined && this.#pods < end) {
        const page = await this.#parts.readPage(this.#since, this.#after, reading.signal);
        if (this.#reading !== reading) return;
        this.#add(page);
        this.#postRecords();
        if (reading.signal.aborted) break;
        await this.#replay();
        if (this.#reading !== reading) return;
      }
    } catch (error) {
      if (this.#reading !== reading) return;
      if (!reading.signal.aborted) this.#failure = failureOf(error);
    }
    this.#reading = undefined;
    this.#postRecords();
    if (!reading.signal.aborted) await this.#replay();
  }

  #add({ records, tooLarge, next }: ApiAnswers["eviction/records"]): void {
    for (const record of records) {
      this.#records.push(record);
      this.#pods += Math.max(record.input.pods.length, 1);
    }
    this.#tooLarge.push(...tooLarge);
    this.#after = next;
  }

  #postRecords(): void {
    const [first, last] = [this.#records[0], this.#records.at(-1)];
    const records: RecordsRead = {
      rounds: this.#records.length,
      first: first?.input.now ?? null,
      last: last?.input.now ?? null,
      lastId: last?.id ?? 0,
      policy: last?.input.policy ?? null,
      tooLarge: this.#tooLarge,
      isReading: this.#reading !== undefined,
      hasMore: this.#after !== undefined,
      isFull: this.#pods >= MOST_PODS,
      ...(this.#failure ? { failure: this.#failure } : {}),
    };
    this.#parts.post({ kind: "records", records });
  }

  /**
   * Replays the rounds that are read but not yet replayed. A replay in progress stops after its current round when
   * another starts.
   */
  async #replay(): Promise<void> {
    const going = this.#going;
    if (!going) return;
    const turn = ++this.#turn;
    const records = this.#records;
    let sliceStart = this.#parts.now();
    while (going.done < records.length) {
      replayOne(going, records[going.done]!);
      if (this.#parts.now() - sliceStart < SLICE_MS) continue;
      await this.#parts.pause();
      if (turn !== this.#turn) return;
      sliceStart = this.#parts.now();
      this.#postProgress(going);
    }
    this.#postResult(going);
  }

  #postProgress(going: Going): void {
    const now = this.#parts.now();
    if (now - going.progressAt < PROGRESS_EVERY_MS) return;
    going.progressAt = now;
    const { run, done } = going;
    this.#parts.post({ kind: "progress", run, done, of: this.#records.length });
  }

  // While pages are being read, one result per second suffices.
  #postResult(going: Going): void {
    const [now, last] = [this.#parts.now(), this.#records.at(-1)];
    if (!last || (this.#reading && now - going.postedAt < RESULTS_EVERY_MS)) return;
    going.postedAt = now;
    const { run, policy, replay, malformed } = going;
    const differences = policyDifferences(last.input.policy, policy);
    this.#parts.post({ kind: "result", result: { run, replay, policy: differences, malformed } });
  }
}

/** A replay in progress. */
interface Going extends Omit<ReplayResult, "policy"> {
  policy: EvictionPolicy;
  /** Number of rounds replayed, of those read. */
  done: number;
  /** When its result and its progress were last sent. */
  postedAt: number;
  progressAt: number;
}

function start(run: number, policy: EvictionPolicy): Going {
  const never = Number.NEGATIVE_INFINITY;
  return { run, policy, replay: emptyReplay(), malformed: [], done: 0, postedAt: never, progressAt: never };
}

function replayOne(going: Going, record: RoundRecord): void {
  going.done++;
  try {
    addToReplay(going.replay, record, going.policy);
  } catch (error) {
    going.malformed.push({ id: record.id, message: (error as Error).message });
  }
}

function failureOf(error: unknown): ReadFailure {
  const { message } = error as Error;
  if (error instanceof Refusal) return { kind: "refused", status: error.status, message };
  return { kind: "unreachable", status: 0, message };
}
