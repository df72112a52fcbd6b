// The files of /proc that tell the time and the boot of the machine.
import { machineIfAny } from "../machine.ts";

/** Returns the content of a file of /proc on the virtual machine. Undefined for other files. */
export function procFile(path: unknown): string | undefined {
  const machine = machineIfAny();
  if (!machine) return undefined;
  if (path === "/proc/uptime") return `${(machine.uptimeMs / 1_000).toFixed(2)} 0.00\n`;
  if (path === "/proc/sys/kernel/random/boot_id") return `${machine.bootId}\n`;
  return undefined;
}
