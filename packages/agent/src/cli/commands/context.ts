import type { Output } from "../output.ts";

/** What commands are given beside their options. */
export interface CommandContext {
  output: Output;
  /** Has the process exit with 1 although the command came to its end: a check failed. */
  fail(): void;
}
