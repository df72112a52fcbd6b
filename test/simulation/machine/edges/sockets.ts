import { lstatSync, renameSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { machineOf } from "../machine.ts";
import { Connection, type Listener, type Service } from "../network.ts";
import { currentProcess } from "../process.ts";
import { isReadOnly } from "./disk-errors.ts";
import { changed } from "./inotify.ts";

let bound = 0;

/** Listens on a unix socket, whose file is created. Throws as bind(2) does. */
export function listenUnix(path: string, service: Service): Listener {
  const process = currentProcess();
  process.edge();
  if (lstatSync(path, { throwIfNoEntry: false })) throw failure("EADDRINUSE", "listen", path);
  if (isReadOnly(path)) throw failure("EROFS", "listen", path);
  // A socket file as the kernel makes it. Closing the handle removes the name under which it was made, not this one.
  const made = join(dirname(path), `.b${++bound}`);
  const handle = createServer();
  handle.on("error", () => {});
  handle.listen(made);
  renameSync(made, path);
  handle.close();
  const listener = machineOf(process).network.listen(identityOf(path), process, service);
  changed(path, "rename");
  return listener;
}

/**
 * Connects to a unix socket. Calls back with the connection, or with an error as connect(2) does. Returns a function
 * that gives up.
 */
export function connectUnix(
  path: string,
  done: (result: Connection | NodeJS.ErrnoException) => void,
): () => void {
  const process = currentProcess();
  process.edge();
  const { network } = machineOf(process);
  const timer = process.after(network.weather.localMs(), () => {
    const identity = identityOf(path);
    const listener = identity === "" ? undefined : network.find(identity);
    if (listener) done(new Connection(process, listener, () => network.weather.localMs()));
    else done(failure(identity === "" ? "ENOENT" : "ECONNREFUSED", "connect", path));
  });
  return () => timer.cancel();
}

export function failure(code: string, call: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${call} ${code} ${path}`), { code, syscall: call, path });
}

function identityOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found ? `${found.dev}:${found.ino}` : "";
}
