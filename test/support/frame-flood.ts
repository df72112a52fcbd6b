import { once } from "node:events";
import {
  createServer as createHttp2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { PluginInfo } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { frame } from "../../packages/core/src/grpc/testing/frames.ts";

/** DATA, the type of the HTTP/2 frames that carry messages. */
const DATA = 0;

/** A plugin that answers as others do, until it sends frames of its own making. */
export interface FrameFlood {
  /** What was taken of the frames, bytes: by the agent, or by the kernel for it. */
  bytesSent(): number;
  /** How often the agent closed the connection while frames were sent. */
  closed(): number;
  stop(): void;
}

export interface FrameFloodOptions {
  name: string;
  type: string;
  version: string;
  /** The encoded message that a call is answered with, by the end of its path; an empty one for all others. */
  messages?: Readonly<Record<string, Uint8Array>>;
  /** The end of the path of the call that is answered with its message, and then frames. */
  method: string;
  /** Bytes in each DATA frame. The frames are one message of 16 MiB, which does not end. */
  payload: number;
}

/** Starts a plugin that sends DATA frames of any size without end, whatever flow control allows. */
export async function startFrameFlood(socketDir: string, options: FrameFloodOptions): Promise<FrameFlood> {
  const { name, type, version, messages = {}, method, payload } = options;
  const info = PluginInfo.encode({ type, name, endpoint: "", supportedVersions: [version] }).finish();
  const sockets = new Map<ServerHttp2Session, Socket>();
  let bytesSent = 0;
  let closed = 0;

  const flood = (stream: ServerHttp2Stream, socket: Socket) => {
    const chunk = Buffer.concat(Array<Buffer>(1_000).fill(frame(DATA, 0, stream.id!, Buffer.alloc(payload))));
    const send = () => {
      while (!socket.destroyed && socket.write(chunk)) bytesSent += chunk.length;
      socket.once("drain", send);
    };
    socket.once("close", () => closed++);
    socket.write(frame(DATA, 0, stream.id!, Buffer.from([0, 1, 0, 0, 0])), send);
  };

  // A listener of our own: node:http2 does not let others write to a socket that it has taken itself.
  const listener = createServer((socket) => {
    socket.on("error", () => {});
    const taken = Duplex.from({ readable: socket, writable: socket });
    taken.on("error", () => {});
    server.once("session", (session) => {
      session.on("error", () => {});
      sockets.set(session, socket);
    });
    server.emit("connection", taken);
  });
  const server = createHttp2Server();
  server.on("stream", (stream, headers) => {
    const called = headers[":path"]!.split("/").at(-1)!;
    stream.on("error", () => {});
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    const message = framed(called === "GetInfo" ? info : (messages[called] ?? new Uint8Array()));
    if (called !== method) stream.end(message);
    else stream.write(message, () => flood(stream, sockets.get(stream.session as ServerHttp2Session)!));
  });
  listener.listen(join(socketDir, `${name}.sock`));
  await once(listener, "listening");
  return {
    bytesSent: () => bytesSent,
    closed: () => closed,
    stop() {
      listener.close();
      for (const socket of sockets.values()) socket.destroy();
    },
  };
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
