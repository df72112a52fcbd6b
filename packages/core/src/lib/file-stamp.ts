import { stat } from "node:fs/promises";

/**
 * Returns a string that changes when the file does. It includes the inode, because mounted Secrets and ConfigMaps are
 * replaced through a symbolic link, and the time of a change of permissions. Rejects like `stat`.
 */
export async function stampOf(file: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
}
