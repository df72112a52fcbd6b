import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  type status,
} from "@grpc/grpc-js";
import { ImageServiceDefinition, RuntimeServiceDefinition } from "@nodekeeper/core/gen/runtime/v1/api.ts";

const methods = { ...RuntimeServiceDefinition.methods, ...ImageServiceDefinition.methods };
type Methods = typeof methods;
type Method = keyof Methods;
type Request<M extends Method> = ReturnType<Methods[M]["requestType"]["decode"]>;
type Answer<M extends Method> = Parameters<Methods[M]["responseType"]["fromPartial"]>[0] | Uint8Array;
/** The server side of a stream, for tests that write to it directly. */
export type Stream = ServerWritableStream<unknown, unknown>;

/**
 * Responses of a test runtime: messages or their raw bytes. Streams yield them. Omitted methods are
 * unimplemented.
 */
export type CriAnswers = {
  [M in Method]?: Methods[M]["responseStream"] extends true
    ? (request: Request<M>, stream: Stream) => AsyncIterable<Answer<M>> | Iterable<Answer<M>>
    : (request: Request<M>) => Promise<Answer<M>> | Answer<M>;
};

/** Returns a gRPC error. */
export function refusal(code: status, details = "no"): Error {
  return Object.assign(new Error(details), { code, details });
}

/** A test runtime on a real socket. */
export class CriServer implements AsyncDisposable {
  readonly path: string;
  /** Read on each call, so tests can change them. */
  answers: CriAnswers;
  /** Number of calls by method. */
  readonly calls = new Map<string, number>();
  readonly #directory: string;
  #server: Server | undefined;

  private constructor(answers: CriAnswers) {
    this.#directory = mkdtempSync(join(tmpdir(), "nkr-"));
    this.path = join(this.#directory, "runtime.sock");
    this.answers = answers;
  }

  static async serve(answers: CriAnswers): Promise<CriServer> {
    const server = new CriServer(answers);
    await server.start();
    return server;
  }

  count(method: Method): number {
    return this.calls.get(method) ?? 0;
  }

  /** Starts listening. Can be called again after `kill`. */
  async start(): Promise<void> {
    const server = new Server({ "grpc.max_send_message_length": -1 });
    for (const name of Object.keys(methods) as Method[]) this.#add(server, name);
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.path}`, ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      );
    });
    this.#server = server;
  }

  /** Closes all connections and stops listening, as if the process had been killed. */
  kill(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    rmSync(this.path, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #add(server: Server, name: Method): void {
    const method = methods[name];
    const { requestType, responseType, responseStream } = method;
    const handler = responseStream ? this.#streaming(name) : this.#unary(name);
    server.register(
      `/${serviceOf(name)}/${method.name}`,
      handler as never,
      (answer: unknown) =>
        Buffer.from(
          answer instanceof Uint8Array
            ? answer
            : responseType.encode(responseType.fromPartial(answer as never) as never).finish(),
        ),
      (bytes) => requestType.decode(bytes),
      responseStream ? "serverStream" : "unary",
    );
  }

  #answerOf(name: Method): (request: unknown, stream?: Stream) => unknown {
    this.calls.set(name, this.count(name) + 1);
    const answer = this.answers[name] as ((request: unknown, stream?: Stream) => unknown) | undefined;
    if (!answer) throw refusal(12, `unknown method ${name}`);
    return answer;
  }

  #unary(name: Method): handleUnaryCall<unknown, unknown> {
    return async ({ request }, reply) => {
      try {
        reply(null, await this.#answerOf(name)(request));
      } catch (error) {
        reply(error as Error);
      }
    };
  }

  #streaming(name: Method): handleServerStreamingCall<unknown, unknown> {
    return async (stream) => {
      try {
        const parts = this.#answerOf(name)(stream.request, stream) as AsyncIterable<unknown>;
        for await (const part of parts) {
          if (stream.cancelled) return;
          if (!stream.write(part)) await new Promise((resolve) => stream.once("drain", resolve));
        }
        stream.end();
      } catch (error) {
        stream.emit("error", error);
      }
    };
  }
}

function serviceOf(name: Method): string {
  return (name in ImageServiceDefinition.methods ? ImageServiceDefinition : RuntimeServiceDefinition)
    .fullName;
}
