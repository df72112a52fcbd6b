import { stat } from "node:fs/promises";

/**
 * Returns a string that changes when the file does. It includes the inode, because mounted Secrets and ConfigMaps are
 * replaced through a symbolic link. Rejects like `stat`.
 */
export async function stampOf(file: string): Promise<string> {
  const { mtimeNs, ino, size } = await stat(file, { bigint: true });
  return `${mtimeNs}:${ino}:${size}`;
}
