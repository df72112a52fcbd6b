import { TooManySmallFrames } from "@nodekeeper/api/errors";
import type { Clock, NodekeeperError } from "../lib/index.ts";

/** Burst limit of frames, regardless of their content. */
export const FRAMES_AT_ONCE = 20_000;
/** Sustained limit of frames per second. */
export const FRAMES_PER_SECOND = 5_000;
/** Payload in bytes that earns one more frame. A peer whose frames average at least this size is not limited. */
export const PAYLOAD_OF_A_FRAME = 32;

/** Size of a frame's header: RFC 9113, 4.1. */
export const FRAME_HEADER_BYTES = 9;
const LENGTH_BYTES = 3;

/**
 * Limits the HTTP/2 frames (RFC 9113, 4.1) of a peer on one connection before they are processed. Every frame costs a
 * call into JavaScript and some hundred bytes of memory, regardless of its size. Flow control counts only payload, so a
 * peer could send millions of frames of one byte.
 */
export class FrameBudget {
  readonly #clock: Clock;
  #frames = FRAMES_AT_ONCE;
  #filledAt: number;
  /** Bytes until the next header. */
  #skip: number;
  #headerBytes = 0;
  #length = 0;

  /** @param preface number of bytes before the first frame */
  constructor(clock: Clock, preface = 0) {
    this.#clock = clock;
    this.#filledAt = clock.monotonic();
    this.#skip = preface;
  }

  /**
   * Reads a chunk from `start` to its end, or until `most` frames have started. Throws `exhausted` if the peer exceeded
   * the budget.
   * @returns the end position and the number of frames that started
   */
  read(chunk: Uint8Array, start: number, most: number): { end: number; frames: number } {
    this.#fill();
    let at = start;
    let frames = 0;
    while (at < chunk.length) {
      if (this.#skip > 0) {
        const count = Math.min(this.#skip, chunk.length - at);
        this.#skip -= count;
        at += count;
        continue;
      }
      if (this.#headerBytes === 0) {
        if (frames === most) break;
        frames += 1;
      }
      this.#addHeaderByte(chunk[at++]!);
    }
    return { end: at, frames };
  }

  #addHeaderByte(byte: number): void {
    this.#headerBytes += 1;
    if (this.#headerBytes <= LENGTH_BYTES) this.#length = this.#length * 256 + byte;
    if (this.#headerBytes < FRAME_HEADER_BYTES) return;
    this.#spend(1, this.#length);
    this.#skip = this.#length;
    this.#headerBytes = 0;
    this.#length = 0;
  }

  /**
   * Counts frames that were read elsewhere since the last call, and their payload in bytes. They may all have arrived
   * at once. Throws as `read` does.
   */
  take(frames: number, payload: number): void {
    this.#spend(frames - this.#gain(), payload);
  }

  #spend(frames: number, payload: number): void {
    this.#frames = Math.min(this.#frames - frames + payload / PAYLOAD_OF_A_FRAME, FRAMES_AT_ONCE);
    if (this.#frames < 0) throw tooMany();
  }

  #fill(): void {
    this.#frames = Math.min(this.#frames + this.#gain(), FRAMES_AT_ONCE);
  }

  /** Returns the number of frames earned since the last call. */
  #gain(): number {
    const now = this.#clock.monotonic();
    const gained = ((now - this.#filledAt) / 1000) * FRAMES_PER_SECOND;
    this.#filledAt = now;
    return gained;
  }
}

function tooMany(): NodekeeperError {
  return new TooManySmallFrames({
    atOnce: FRAMES_AT_ONCE,
    perSecond: FRAMES_PER_SECOND,
    bytes: PAYLOAD_OF_A_FRAME,
  });
}
