import type { Probe } from "./probe.ts";

/** A process and how it was started. */
export interface FoundProcess {
  pid: number;
  arguments: readonly string[];
}

const NUMBER = /^\d+$/;

/**
 * The first process of this name (of at most 15 characters, as the kernel keeps it), by number; undefined where none
 * runs, or other processes can't be seen.
 * @param known the number it had when it was last found: all others are only looked at when it has ended
 */
export async function findProcess(
  probe: Probe,
  name: string,
  known: number | undefined,
): Promise<FoundProcess | undefined> {
  const isIt = (pid: string) => probe.optionalKernelText(`/proc/${pid}/comm`) === name;
  const pid =
    known !== undefined && isIt(String(known))
      ? String(known)
      : (await probe.list("/proc"))?.filter((entry) => NUMBER.test(entry)).find(isIt);
  const line = pid === undefined ? undefined : await probe.optionalText(`/proc/${pid}/cmdline`);
  if (line === undefined) return undefined;
  return { pid: Number(pid), arguments: line.split("\0").filter((argument) => argument !== "") };
}
