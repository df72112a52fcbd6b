// Takes the place of packages/core/src/grpc/http2-session.ts: streams of HTTP/2 on the connections of the machine.
import { EventEmitter } from "node:events";
import { Duplex } from "node:stream";
import { Connection } from "../network.ts";
import { currentProcess } from "../process.ts";
import { connectUnix } from "./sockets.ts";

const HEADER_BYTES = 5;

export function openHttp2Session(path: string): Session {
  return new Session(path);
}

class Session extends EventEmitter {
  closed = false;
  destroyed = false;
  readonly process = currentProcess();
  readonly #streams = new Set<Stream>();
  #connection: Connection | undefined;
  #waiting: ((connection: Connection) => void)[] = [];
  readonly #giveUp: () => void;

  constructor(path: string) {
    super();
    this.#giveUp = connectUnix(path, (result) => {
      if (!(result instanceof Connection)) {
        this.#end(result);
        return;
      }
      this.#connection = result;
      result.onEnd("client", () => this.#end());
      this.emit("connect");
      result.send("server", () => result.send("client", () => this.emit("remoteSettings", {})));
      for (const start of this.#waiting.splice(0)) start(result);
    });
  }

  request(headers: Record<string, string>): Stream {
    if (this.closed || this.destroyed) throw new Error("The session has been destroyed");
    const stream = new Stream(this, headers[":path"]!);
    this.#streams.add(stream);
    stream.once("close", () => {
      this.#streams.delete(stream);
      if (this.closed && this.#streams.size === 0) this.destroy();
    });
    return stream;
  }

  /** Calls back with the connection once there is one. */
  whenConnected(start: (connection: Connection) => void): void {
    if (this.#connection) start(this.#connection);
    else this.#waiting.push(start);
  }

  settings(_settings: object, done: (error?: Error) => void): void {
    this.whenConnected((connection) =>
      connection.send("server", () => connection.send("client", () => this.destroyed || done())),
    );
  }

  setLocalWindowSize(): void {}

  close(): void {
    this.closed = true;
    if (this.#streams.size === 0) this.process.after(0, () => this.destroy());
  }

  destroy(error?: Error): void {
    if (this.destroyed) return;
    this.#giveUp();
    this.#connection?.endBy("client");
    this.#end(error);
  }

  #end(error?: Error): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.closed = true;
    this.#waiting = [];
    this.process.after(0, () => {
      for (const stream of this.#streams) stream.destroy(error ?? reset());
      if (error) this.emit("error", error);
      this.emit("close");
    });
  }
}

function reset(): Error {
  return Object.assign(new Error("The pending stream has been canceled"), {
    code: "ERR_HTTP2_STREAM_CANCEL",
  });
}

class Stream extends Duplex {
  readonly session: Session;
  readonly #path: string;
  readonly #chunks: Buffer[] = [];
  #cancel = () => {};

  constructor(session: Session, path: string) {
    super();
    this.session = session;
    this.#path = path;
  }

  close(): void {
    this.destroy();
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  override _final(done: () => void): void {
    const request = Buffer.concat(this.#chunks).subarray(HEADER_BYTES);
    let hasHeaders = false;
    const headers = () => {
      if (!hasHeaders) this.emit("response", { ":status": 200, "content-type": "application/grpc" });
      hasHeaders = true;
    };
    this.session.whenConnected((connection) => {
      if (this.destroyed) return;
      this.#cancel = connection.call({
        path: this.#path,
        request,
        onMessage: (message) => {
          headers();
          const header = Buffer.alloc(HEADER_BYTES);
          header.writeUInt32BE(message.length, 1);
          this.push(Buffer.concat([header, message]));
        },
        onEnd: (status, details) => {
          // The session ends its streams.
          if (status === undefined) return;
          headers();
          this.emit("trailers", {
            "grpc-status": String(status),
            "grpc-message": encodeURIComponent(details),
          });
          this.push(null);
        },
      });
    });
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#cancel();
    done(error);
  }
}
