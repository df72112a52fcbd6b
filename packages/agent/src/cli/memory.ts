import { setFlagsFromString } from "node:v8";

/**
 * Makes V8 prefer a small process to a little speed: an agent computes little and runs everywhere. Must come before
 * much is allocated. Measured with 50 plugins: 129 MB resident without, 92 MB with.
 */
export function keepProcessSmall(): void {
  setFlagsFromString("--optimize-for-size");
  // New objects die young here: a nursery that grows is memory that is not given back.
  setFlagsFromString("--semi-space-growth-factor=1");
  // What is really hot still gets the optimizing compiler; a second one in between costs more than it brings.
  setFlagsFromString("--no-maglev");
}
