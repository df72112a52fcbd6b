import { setTimeout as sleep } from "node:timers/promises";
import type { DeviceHealth, DevicePool } from "@nodekeeper/sdk";

const MEMORY_GIB = 40;

/**
 * Simulated accelerators, assigned to the NUMA nodes in turn. Every `intervalMs`, one accelerator fails, or the failed
 * one recovers. They fail one after another.
 */
export class Accelerators {
  readonly #count: number;
  readonly #intervalMs: number;
  readonly #numaNodes: number;
  readonly #startedAt = performance.now();

  constructor(count: number, intervalMs: number, numaNodes: number) {
    this.#count = count;
    this.#intervalMs = intervalMs;
    this.#numaNodes = numaNodes;
  }

  /** Yields all accelerators, and again after each change. */
  async *devices(signal: AbortSignal): AsyncGenerator<DevicePool[]> {
    // Without a name the pool is called after the node.
    for await (const failing of this.#changes(signal))
      yield [
        {
          devices: this.#numbers().map((number) =>
            device(number, number % this.#numaNodes, number !== failing),
          ),
        },
      ];
  }

  /** Yields the health of all accelerators, and again after each change. */
  async *health(signal: AbortSignal): AsyncGenerator<DeviceHealth[]> {
    for await (const failing of this.#changes(signal))
      yield this.#numbers().map((number) => ({
        device: `accelerator-${number}`,
        healthy: number !== failing,
        ...(number === failing ? { message: "simulated failure" } : {}),
      }));
  }

  #numbers(): number[] {
    return Array.from({ length: this.#count }, (_, number) => number);
  }

  // Yields the number of the failed accelerator, undefined if all are healthy: at the start and after each change.
  async *#changes(signal: AbortSignal): AsyncGenerator<number | undefined> {
    for (;;) {
      const elapsedMs = performance.now() - this.#startedAt;
      const tick = Math.floor(elapsedMs / this.#intervalMs);
      yield tick % 2 === 1 ? Math.floor(tick / 2) % this.#count : undefined;
      await sleep((tick + 1) * this.#intervalMs - elapsedMs, undefined, { signal });
    }
  }
}

function device(number: number, numaNode: number, healthy: boolean) {
  return {
    name: `accelerator-${number}`,
    attributes: {
      model: { string: number % 2 === 0 ? "alpha" : "beta" },
      driverVersion: { version: "1.4.2" },
      index: { int: BigInt(number) },
      numaNode: { int: BigInt(numaNode) },
      healthy: { bool: healthy },
    },
    capacity: { memory: { value: `${MEMORY_GIB}Gi` } },
  };
}
