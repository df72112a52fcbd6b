import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/** Decides how much of the received data is passed on, and when. */
export interface Pace {
  /**
   * Returns the end of the part of `chunk` to pass on now, or `start` if nothing may be passed on in this turn of the
   * event loop. If it throws, the socket is destroyed with that error.
   */
  next(chunk: Buffer, start: number): number;
  /** Calls `callback` when `next` may pass on more data. */
  later(callback: () => void): void;
}

/**
 * A socket that passes on received data in pieces. node:http and node:http2 process a chunk of 64 KiB in one turn of
 * the event loop, regardless of the work it causes. With this class between them and the socket, the pace limits that
 * work, and the peer waits meanwhile.
 */
export class PacedSocket extends Duplex {
  readonly #socket: Socket;
  readonly #pace: Pace;
  /** Received chunks that are not yet passed on, each from its `start`. */
  readonly #held: { chunk: Buffer; start: number }[] = [];
  #isWaiting = false;
  #isStopped = false;
  #hasEnded = false;

  constructor(socket: Socket, pace: Pace) {
    super({ allowHalfOpen: socket.allowHalfOpen });
    this.#socket = socket;
    this.#pace = pace;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("end", () => {
      this.#hasEnded = true;
      this.#passOn();
    });
    socket.on("timeout", () => this.emit("timeout"));
    socket.on("error", (error) => void this.destroy(error));
    socket.on("close", () => {
      if (this.readableEnded || !this.#hasEnded) this.destroy();
      else this.once("end", () => this.destroy());
    });
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.#socket.remotePort;
  }

  /** Discards received data that was not passed on and stops reading. Written data is still sent. */
  stopReading(): void {
    this.#isStopped = true;
    this.#held.length = 0;
    this.#socket.pause();
  }

  /** See `Socket.setTimeout`. */
  setTimeout(ms: number, callback?: () => void): this {
    this.#socket.setTimeout(ms);
    if (callback) this.once("timeout", callback);
    return this;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  override _read(): void {
    if (this.#held.length === 0 && !this.#isStopped) this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#socket.cork();
    for (const [at, { chunk }] of chunks.entries())
      this.#socket.write(chunk, at === chunks.length - 1 ? done : undefined);
    this.#socket.uncork();
  }

  override _final(done: () => void): void {
    // The socket ends by itself after its peer did.
    if (this.#socket.writableFinished) done();
    else this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#held.length = 0;
    this.#socket.destroy();
    done(error);
  }

  #receive(chunk: Buffer): void {
    if (this.#isStopped) return;
    this.#held.push({ chunk, start: 0 });
    this.#passOn();
  }

  #passOn(): void {
    if (this.#isWaiting) return;
    try {
      while (this.#held.length > 0 && !this.destroyed) if (!this.#passPiece(this.#held[0]!)) return;
    } catch (error) {
      this.destroy(error as Error);
      return;
    }
    if (this.#hasEnded && !this.destroyed) this.push(null);
  }

  // Returns false if the rest must wait for a later turn.
  #passPiece(first: { chunk: Buffer; start: number }): boolean {
    const { chunk, start } = first;
    const end = this.#pace.next(chunk, start);
    if (end === start) {
      this.#wait();
      return false;
    }
    if (end === chunk.length) this.#held.shift();
    else first.start = end;
    const isWanted = this.push(start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end));
    if (!isWanted || this.#isStopped) this.#socket.pause();
    else if (this.#held.length === 0 && this.#socket.isPaused()) this.#socket.resume();
    return true;
  }

  #wait(): void {
    this.#socket.pause();
    this.#isWaiting = true;
    this.#pace.later(() => {
      this.#isWaiting = false;
      this.#passOn();
    });
  }
}
