// node:net, as far as the agent uses it: connections on which nothing is sent.
import { EventEmitter } from "node:events";
import { rmSync } from "node:fs";
import { Connection, type Listener } from "../network.ts";
import { currentProcess } from "../process.ts";
import { isReadOnly } from "./disk-errors.ts";
import { changed } from "./inotify.ts";
import { connectUnix, listenUnix } from "./sockets.ts";

export { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

class Socket extends EventEmitter {
  #end: () => void;

  constructor(path: string) {
    super();
    this.#end = connectUnix(path, (result) => {
      if (!(result instanceof Connection)) {
        this.emit("error", result);
        return;
      }
      this.#end = () => result.endBy("client");
      result.send("server", () => result.listener.service.onConnection?.());
      this.emit("connect");
    });
  }

  destroy(): this {
    this.#end();
    return this;
  }
}

export function connect(where: string | { path: string }): Socket {
  return new Socket(typeof where === "string" ? where : where.path);
}

class Server extends EventEmitter {
  readonly #onConnection: (socket: EventEmitter & { destroy: () => void }) => void;
  #listener: Listener | undefined;
  #path = "";

  constructor(onConnection: Server["onConnection"]) {
    super();
    this.#onConnection = onConnection;
  }

  get onConnection() {
    return this.#onConnection;
  }

  listen(path: string, done: () => void): this {
    this.#path = path;
    currentProcess().after(0, () => {
      try {
        const accept = () => this.#onConnection(Object.assign(new EventEmitter(), { destroy: () => {} }));
        this.#listener = listenUnix(path, { onConnection: accept });
      } catch (error) {
        this.emit("error", error);
        return;
      }
      done();
    });
    return this;
  }

  unref(): this {
    return this;
  }

  close(done?: () => void): this {
    const process = currentProcess();
    process.edge();
    if (this.#listener) {
      this.#listener.stop();
      this.#unlink();
    }
    this.#listener = undefined;
    if (done) process.after(0, done);
    return this;
  }

  #unlink(): void {
    if (isReadOnly(this.#path)) return;
    rmSync(this.#path, { force: true });
    changed(this.#path, "rename");
  }
}

export function createServer(onConnection: Server["onConnection"]): Server {
  return new Server(onConnection);
}
