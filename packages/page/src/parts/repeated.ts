/**
 * Coalesces repeated requests for work: runs one at a time, starts at most once per `intervalMs`, and runs once more
 * after a request made during a run. No request is lost.
 */
export class Repeated {
  readonly #intervalMs: number;
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #stop = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRunning = false;
  #isWanted = false;
  #startedAt = Number.NEGATIVE_INFINITY;

  /** @param work must not reject */
  constructor(intervalMs: number, work: (signal: AbortSignal) => Promise<void>) {
    this.#intervalMs = intervalMs;
    this.#work = work;
  }

  request(): void {
    this.#isWanted = true;
    if (this.#isRunning || this.#timer !== undefined || this.#stop.signal.aborted) return;
    const wait = Math.max(this.#startedAt + this.#intervalMs - performance.now(), 0);
    this.#timer = setTimeout(() => this.#run(), wait);
  }

  /** Aborts the current run. Nothing is started afterwards. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  async #run(): Promise<void> {
    this.#timer = undefined;
    this.#isWanted = false;
    this.#isRunning = true;
    this.#startedAt = performance.now();
    await this.#work(this.#stop.signal);
    this.#isRunning = false;
    if (this.#isWanted) this.request();
  }
}
