/** A long-running part. `run` returns when the signal aborts and everything it started has ended. */
export interface Runnable {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}
