import { vi } from "vitest";
import type { Output } from "../output.ts";

/** What a command printed, and its exit status. */
export interface CommandResult {
  status: number;
  out: string;
  stderr: string;
}

/**
 * Runs a command on an output that is no terminal. Standard error, and what is written to standard output beside the
 * command's output, such as help, are captured meanwhile.
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
