import {
  addToReplay,
  type EvictionPolicy,
  emptyReplay,
  policyDifferences,
  type RoundRecord,
} from "../../../../agent/src/eviction/replay/index.ts";
import { type ApiAnswers, Refusal } from "../../api.ts";
import type { FromWorker, ReadFailure, RecordsRead, ReplayResult, ToWorker } from "./messages.ts";

export interface SessionParts {
  /** A page of records. Throws as `ask`. */
  readPage(since: number, after: number, signal: AbortSignal): Promise<ApiAnswers["eviction/records"]>;
  post(message: FromWorker): void;
  /** Lets messages arrive. */
  pause(): Promise<void>;
  /** Milliseconds of a clock that is never set back. */
  now(): number;
}

// Rounds are counted by their pods, about 0.7 KB of JSON each: a batch is 35 MB at most, or one page of larger rounds.
const BATCH_PODS = 50_000;
const MOST_PODS = 4 * BATCH_PODS;
const SLICE_MS = 50;

/** Reads recorded rounds in batches and replays them, one policy after another: the newest request replaces the others. */
export class ReplaySession {
  readonly #parts: SessionParts;
  #records: RoundRecord[] = [];
  #pods = 0;
  #since = 0;
  /** Where reading continues; undefined at the end. */
  #after: number | undefined = 0;
  #tooLarge: RecordsRead["tooLarge"] = [];
  #failure: ReadFailure | undefined;
  #reading: AbortController | undefined;
  #wanted: { run: number; policy: EvictionPolicy } | undefined;
  #turn = 0;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** Does what a message asks for. Never rejects. */
  async take(message: ToWorker): Promise<void> {
    switch (message.kind) {
      case "read":
        this.#forget(message.since);
        return this.#readBatch();
      case "readMore":
        return this.#readBatch();
      case "replay":
        this.#wanted = message;
        return this.#reading ? undefined : this.#replay();
      case "stop":
        this.#turn++;
        this.#reading?.abort();
    }
  }

  #forget(since: number): void {
    this.#reading?.abort();
    this.#turn++;
    this.#records = [];
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
      policy: last?.input.policy ?? null,
      tooLarge: this.#tooLarge,
      isReading: this.#reading !== undefined,
      hasMore: this.#after !== undefined,
      isFull: this.#pods >= MOST_PODS,
      ...(this.#failure ? { failure: this.#failure } : {}),
    };
    this.#parts.post({ kind: "records", records });
  }

  async #replay(): Promise<void> {
    if (!this.#wanted || this.#records.length === 0) return;
    const { run, policy } = this.#wanted;
    const turn = ++this.#turn;
    const records = this.#records;
    const replay = emptyReplay();
    const malformed: ReplayResult["malformed"] = [];
    let sliceStart = this.#parts.now();
    for (const [at, record] of records.entries()) {
      try {
        addToReplay(replay, record, policy);
      } catch (error) {
        malformed.push({ id: record.id, message: (error as Error).message });
      }
      if (this.#parts.now() - sliceStart < SLICE_MS) continue;
      this.#parts.post({ kind: "progress", run, done: at + 1, of: records.length });
      await this.#parts.pause();
      if (turn !== this.#turn) return;
      sliceStart = this.#parts.now();
    }
    const differences = policyDifferences(records.at(-1)!.input.policy, policy);
    this.#parts.post({ kind: "result", result: { run, replay, policy: differences, malformed } });
  }
}

function failureOf(error: unknown): ReadFailure {
  const { message } = error as Error;
  if (error instanceof Refusal) return { kind: "refused", status: error.status, message };
  return { kind: "unreachable", status: 0, message };
}
