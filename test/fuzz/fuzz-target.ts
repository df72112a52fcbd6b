import type fc from "fast-check";

/** Something of the agent's that reads what others send. */
export interface FuzzTarget {
  name: string;
  /** One line for the help. */
  about: string;
  /** Inputs that are nearly right: of the right structure, then changed. */
  inputs: fc.Arbitrary<Uint8Array>;
  /** Reads one input. Throws where it breaks a rule; what the reader itself may throw is caught. */
  run(input: Uint8Array): Promise<void> | void;
  /** Ends what `run` started. */
  close?(): Promise<void>;
}

/** Lets an error pass that the reader may throw; every other one is a finding. */
export function expectedOnly(
  error: unknown,
  ...expected: (abstract new (
    ...args: never[]
  ) => Error)[]
): void {
  if (!expected.some((kind) => error instanceof kind)) throw error;
}

export function textOf(input: Uint8Array): string {
  return Buffer.from(input).toString("utf8");
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
