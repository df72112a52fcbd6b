import type { ClientHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { systemClock, type Timer } from "../lib/index.ts";
import { FRAME_HEADER_BYTES, FrameBudget } from "./frame-budget.ts";
import { FRAMES_PER_TURN } from "./frame-pace.ts";

/** Size of the reads of node:http2. It does not stop in the middle of one. */
export const READ_BYTES = 64 * 1024;

const SAMPLE_FRAMES = 100;
const SAMPLE_MS = 2_000;

const open = new Set<SampledFrames>();
let timer: Timer | undefined;

/**
 * Applies the frame budget to a client's HTTP/2 connection without a layer between node:http2 and the socket, which
 * would copy all written data. Everything received that is not payload of DATA frames counts as frame headers. Other
 * frames cost little, so their number is checked every two seconds.
 */
export class SampledFrames {
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #budget = new FrameBudget(systemClock);
  #payload = 0;
  #payloadSinceSample = 0;
  #overhead = 0;
  #inTurn = 0;

  /**
   * Checks the connection until it closes.
   * @param socket with `onread`; otherwise `pause` does not stop reads from the kernel
   */
  constructor(session: ClientHttp2Session, socket: Socket) {
    this.#session = session;
    this.#socket = socket;
    open.add(this);
    timer ??= systemClock.after(SAMPLE_MS, sampleAll);
    session.once("close", () => this.#end());
  }

  /** Must be called for the payload of each DATA frame, or for each part of it. */
  addData(payload: number): void {
    this.#payload += payload;
    this.#payloadSinceSample += payload;
    if (this.#inTurn === 0) setImmediate(() => this.#nextTurn());
    this.#inTurn += 1;
    if (this.#inTurn % SAMPLE_FRAMES === 0) this.sample();
    if (this.#inTurn === FRAMES_PER_TURN) this.#socket.pause();
  }

  /** Exempts payload that `addData` will not receive. */
  addDiscarded(payload: number): void {
    this.#payload += payload;
  }

  /** Closes the connection if the peer exceeded the budget. */
  sample(): void {
    // Up to one read may be payload that `addData` has yet to receive.
    const overhead = Math.max(this.#overhead, this.#socket.bytesRead - READ_BYTES - this.#payload);
    const frames = (overhead - this.#overhead) / FRAME_HEADER_BYTES;
    try {
      this.#budget.take(frames, this.#payloadSinceSample);
    } catch (error) {
      this.#session.destroy(error as Error);
    }
    this.#overhead = overhead;
    this.#payloadSinceSample = 0;
  }

  #nextTurn(): void {
    if (this.#inTurn >= FRAMES_PER_TURN) this.#socket.resume();
    this.#inTurn = 0;
  }

  #end(): void {
    open.delete(this);
    if (open.size > 0) return;
    timer?.cancel();
    timer = undefined;
  }
}

function sampleAll(): void {
  timer = systemClock.after(SAMPLE_MS, sampleAll);
  for (const frames of open) frames.sample();
}
