// node:timers/promises on virtual time.
import { currentProcess } from "../process.ts";

export function setImmediate<T>(value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T> {
  return setTimeout(0, value, { signal });
}

export function setTimeout<T>(ms: number, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    currentProcess().after(ms, () => (signal?.aborted ? reject(signal.reason) : resolve(value as T)));
  });
}
