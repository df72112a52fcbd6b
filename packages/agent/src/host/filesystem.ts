import type { Probe } from "./probe.ts";

/** The file system that holds a path. */
export interface FilesystemState {
  path: string;
  sizeBytes: number;
  /** For all users but root, as the kubelet counts it. */
  availableBytes: number;
  /** 0 where the file system makes inodes as it needs them (btrfs): then `inodesFree` has no meaning. */
  inodes: number;
  inodesFree: number;
}

/** Undefined where the path is absent. */
export async function readFilesystem(probe: Probe, path: string): Promise<FilesystemState | undefined> {
  const stats = await probe.filesystem(path);
  if (stats === undefined) return undefined;
  const { bsize, blocks, bavail, files, ffree } = stats;
  return {
    path,
    sizeBytes: blocks * bsize,
    availableBytes: bavail * bsize,
    inodes: files,
    inodesFree: ffree,
  };
}
