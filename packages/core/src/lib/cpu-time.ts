/** CPU time that this process has used on all its threads, milliseconds. Waiting for a busy machine is not in it. */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
