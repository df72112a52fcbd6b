/** CPU time that this process has used on all its threads, milliseconds. Time spent waiting for a CPU is not included. */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** CPU time that the calling thread has used, milliseconds. Waiting for a busy machine is not in it. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
