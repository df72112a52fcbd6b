import { chmod, lstat, mkdir, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, checkSocketPath, NodekeeperError, probeSocket } from "../lib/index.ts";

/** A socket file that this process serves. */
export interface OwnSocket {
  path: string;
  identity: string;
}

/**
 * Serves at `path` in two moves: bind under a hidden name, then rename into place. A watcher never meets a socket
 * without a listener, and a stale file is replaced. Throws `conflict` when a live process serves the path.
 * @param listen binds to the path it is given
 * @param mode of the socket file
 */
export async function placeSocket(
  path: string,
  hiddenName: string,
  clock: Clock,
  listen: (path: string) => Promise<void>,
  mode = 0o600,
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

/** Whether the file at the path is the one we made, is missing (or stale), or is served by another process. */
export async function ownershipOf(socket: OwnSocket, clock: Clock): Promise<"ours" | "lost" | "taken"> {
  const identity = await identityAt(socket.path);
  if (identity === socket.identity) return "ours";
  if (identity === undefined) return "lost";
  return (await probeSocket(clock, socket.path)) === "accepts" ? "taken" : "lost";
}

/** Removes the file if it is still ours. */
export async function removeSocket(socket: OwnSocket, clock: Clock): Promise<void> {
  if ((await ownershipOf(socket, clock)) === "ours") await unlink(socket.path).catch(() => {});
}

async function refuseLiveOwner(path: string, clock: Clock): Promise<void> {
  if ((await probeSocket(clock, path)) === "accepts") {
    throw new NodekeeperError("conflict", `another process serves ${path}; is a second instance running?`, {
      id: "NK1706",
    });
  }
  const present = await lstat(path).catch(() => undefined);
  if (present && !present.isSocket()) {
    throw new NodekeeperError("conflict", `${path} exists and is no socket; it is left alone`, {
      id: "NK1707",
    });
  }
}

async function identityAt(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.dev}:${found.ino}:${found.birthtimeNs}`;
}
