// node:crypto whose chance is drawn from the seed.

import * as real from "node:crypto";
import { machineIfAny } from "../machine.ts";

export * from "node:crypto";

export function randomBytes(size: number): Buffer {
  const machine = machineIfAny();
  if (!machine) return real.randomBytes(size);
  return Buffer.from(Array.from({ length: size }, () => machine.between(0, 255)));
}

export function randomUUID(): string {
  const hex = randomBytes(16).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
