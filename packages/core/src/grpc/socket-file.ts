import { chmod, lstat, mkdir, readdir, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SocketInUse, SocketPathTaken } from "@nodekeeper/api/errors";
import { type Clock, checkSocketPath, probeSocket } from "../lib/index.ts";

/** A socket file that this process serves. */
export interface OwnSocket {
  path: string;
  identity: string;
}

interface SocketPlace {
  path: string;
  /** In the same directory. */
  hiddenName: string;
  /** Of the socket file. Default: 0600. */
  mode?: number | undefined;
}

/**
 * Binds under a hidden name, then renames to `path`. A watcher therefore never finds a socket without a listener, and a
 * stale file is replaced. Throws `conflict` if another process serves the path.
 * @param listen binds to the given path
 */
export async function placeSocket(
  { path, hiddenName, mode = 0o600 }: SocketPlace,
  clock: Clock,
  listen: (path: string) => Promise<void>,
): Promise<OwnSocket> {
  const hidden = join(dirname(path), hiddenName);
  checkSocketPath(path);
  checkSocketPath(hidden);
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  await refuseLiveOwner(path, clock);
  await unlink(hidden).catch(() => {});
  await listen(hidden);
  await chmod(hidden, mode);
  const identity = await identityAt(hidden);
  await rename(hidden, path);
  return { path, identity: identity ?? "" };
}

/**
 * Returns whether this process still owns the socket file (`ours`), it is missing or stale (`lost`), or another process
 * serves it (`taken`).
 */
export async function ownershipOf(socket: OwnSocket, clock: Clock): Promise<"ours" | "lost" | "taken"> {
  const identity = await identityAt(socket.path);
  if (identity === socket.identity) return "ours";
  if (identity === undefined) return "lost";
  return (await probeSocket(clock, socket.path)) === "accepts" ? "taken" : "lost";
}

/** Removes the file if this process still owns it. */
export async function removeSocket(socket: OwnSocket, clock: Clock): Promise<void> {
  if ((await ownershipOf(socket, clock)) === "ours") await unlink(socket.path).catch(() => {});
}

/** Removes sockets with these names on which no process listens, left by killed instances. Never rejects. */
export async function removeStaleSockets(
  directory: string,
  isOwnName: (name: string) => boolean,
  clock: Clock,
): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  for (const name of names.filter(isOwnName)) {
    const path = join(directory, name);
    if ((await probeSocket(clock, path)) === "refused") await unlink(path).catch(() => {});
  }
}

async function refuseLiveOwner(path: string, clock: Clock): Promise<void> {
  if ((await probeSocket(clock, path)) === "accepts") {
    throw new SocketInUse({ problem: `serves ${path}; is a second instance running?` });
  }
  const present = await lstat(path).catch(() => undefined);
  if (present && !present.isSocket()) {
    throw new SocketPathTaken({ path });
  }
}

async function identityAt(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.dev}:${found.ino}:${found.birthtimeNs}`;
}
