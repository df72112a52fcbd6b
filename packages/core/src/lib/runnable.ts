/** A long-running part. `run` returns when the signal aborts and everything it started has ended. */
export interface Runnable {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
  /**
   * Resolves once what other parts need of this one is there after `run` was called: it listens, it has loaded its files.
   * Rejects only where `run` fails too. Absent: it is ready as soon as `run` was called.
   */
  ready?(): Promise<unknown>;
}
