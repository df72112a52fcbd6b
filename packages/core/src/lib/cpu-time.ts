/** Returns the CPU time used by all threads of this process, in milliseconds. Excludes time spent waiting for a CPU. */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Returns the CPU time used by the calling thread, in milliseconds. Excludes time spent waiting for a CPU. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
