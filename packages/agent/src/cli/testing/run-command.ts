import { vi } from "vitest";
import type { Output } from "../output.ts";

/** Output and exit status of a command. */
export interface CommandResult {
  status: number;
  out: string;
  stderr: string;
}

/**
 * Runs a command whose output is not a terminal. Also captures standard error, and other text written to standard
 * output, such as help.
 */
export async function runCommand(run: (output: Output) => Promise<number>): Promise<CommandResult> {
  let out = "";
  let stderr = "";
  const write = (text: string) => {
    out += text;
  };
  const written = [
    vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      write(String(text));
      return true;
    }),
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      stderr += String(text);
      return true;
    }),
  ];
  try {
    const status = await run({ write, isTerminal: false, columns: 120 });
    return { status, out, stderr };
  } finally {
    for (const spy of written) spy.mockRestore();
  }
}
