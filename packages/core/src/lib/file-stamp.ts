import { stat } from "node:fs/promises";

/**
 * A text that changes when the file does. Mounted Secrets and ConfigMaps are swapped by a symbolic link: the inode
 * shows it. Rejects as `stat` does.
 */
export async function stampOf(file: string): Promise<string> {
  const { mtimeNs, ino, size } = await stat(file, { bigint: true });
  return `${mtimeNs}:${ino}:${size}`;
}
