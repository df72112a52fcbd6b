/**
 * Returns the newest container of each name, by name. The container runtime still lists the predecessors of a restarted
 * container. @param containers `createdAt` in milliseconds since the epoch; one without it is the oldest
 */
export function newestOfEachName<T extends { name: string; createdAt?: number | undefined }>(
  containers: readonly T[],
): T[] {
  const newest = new Map<string, T>();
  for (const container of containers) {
    const known = newest.get(container.name);
    if (!known || (container.createdAt ?? 0) > (known.createdAt ?? 0)) newest.set(container.name, container);
  }
  return [...newest.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
