import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServerCredentials } from "@grpc/grpc-js";
import { RetryInfo, Status as RpcStatus } from "@nodekeeper/core/gen/google/rpc/status.ts";
import {
  ExportLogsServiceRequest,
  ExportLogsServiceResponse,
  LogsServiceDefinition,
} from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import {
  createServer as createGrpcServer,
  type Server as GrpcServer,
  type Metadata,
  ServerError,
  Status,
} from "nice-grpc";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hasOpenssl, makeAuthority } from "../../../../core/src/kube/testing/certificates.ts";
import { headersOf } from "./access-files.ts";
import type { OtlpRequest, Transport } from "./delivery.ts";
import { GrpcTransport } from "./grpc-transport.ts";
import { HttpTransport, type TransportOptions } from "./http-transport.ts";

let directory: string;
let server: Server | undefined;
let transport: Transport | undefined;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkt-"));
});
afterEach(async () => {
  transport?.[Symbol.dispose]();
  server?.closeAllConnections();
  server?.close();
  rmSync(directory, { recursive: true });
});

const logs: OtlpRequest = {
  signal: "logs",
  body: ExportLogsServiceRequest.encode({
    resourceLogs: [{ resource: undefined, scopeLogs: [], schemaUrl: "schema" }],
  }).finish(),
};
const signal = new AbortController().signal;

async function portOf(listening: Server): Promise<number> {
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  return (listening.address() as AddressInfo).port;
}

const optionsFor = (endpoint: string, options: Partial<TransportOptions> = {}): TransportOptions => ({
  ...{ endpoint, caFile: "", headersFile: "", compression: "gzip", userAgent: "nodekeeper/1" },
  ...options,
});

/** Sends logs over HTTP to a server with this answer. */
async function overHttp(listener: RequestListener, options: Partial<TransportOptions> = {}) {
  const port = await portOf(createServer(listener));
  transport = new HttpTransport(optionsFor(`http://127.0.0.1:${port}/base/`, options));
  return await transport.send(logs, signal);
}

describe("OTLP over HTTP", () => {
  it.each([
    [200, {}, { kind: "accepted", rejected: 0, message: "" }],
    [202, {}, { kind: "accepted", rejected: 0, message: "" }],
    [429, { "retry-after": "7" }, { kind: "unavailable", retryAfterMs: 7_000 }],
    [503, {}, { kind: "unavailable", retryAfterMs: 0, message: "HTTP 503: busy" }],
    [502, { "retry-after": "soon" }, { kind: "unavailable", retryAfterMs: 0 }],
    [504, {}, { kind: "unavailable" }],
    // Of a server that is no collector, as one that expects TLS.
    [400, {}, { kind: "denied", message: "HTTP 400: busy" }],
    [415, {}, { kind: "denied" }],
    [
      200,
      { "content-type": "application/x-protobuf" },
      { kind: "accepted", rejected: 0, message: /can't be read/ },
    ],
    [413, {}, { kind: "tooLarge" }],
    [401, {}, { kind: "denied" }],
    [404, {}, { kind: "unsupported" }],
    [500, {}, { kind: "denied" }],
  ])("takes %i for what OTLP says", async (status, headers, expected) => {
    const delivery = await overHttp((request, response) => {
      request.resume();
      response.writeHead(status, headers).end("busy\nsecond line");
    });
    expect(delivery).toMatchObject(expected);
  });

  it("reads a partial success, and the message of a status in protobuf", async () => {
    const partialSuccess = { rejectedLogRecords: 2n, errorMessage: "too old" };
    const answers = [
      { status: 200, body: ExportLogsServiceResponse.encode({ partialSuccess }).finish() },
      { status: 400, body: RpcStatus.encode({ code: 3, message: "no logs", details: [] }).finish() },
    ];
    const listener: RequestListener = (request, response) => {
      request.resume();
      const { status, body } = answers.shift()!;
      response.writeHead(status, { "content-type": "application/x-protobuf" }).end(body);
    };
    expect(await overHttp(listener)).toEqual({ kind: "accepted", rejected: 2, message: "too old" });
    expect(await transport!.send(logs, signal)).toEqual({ kind: "refused", message: "HTTP 400: no logs" });
  });

  it("sends logs while the receiver of traces does not respond", async () => {
    const answered: string[] = [];
    const delivery = await overHttp((request, response) => {
      request.resume();
      answered.push(request.url!);
      if (request.url!.endsWith("/v1/traces")) void transport!.send(logs, signal).then(() => response.end());
      else response.end();
    });
    expect(delivery.kind).toBe("accepted");
    expect(await transport!.send({ ...logs, signal: "traces" }, signal)).toMatchObject({ kind: "accepted" });
    expect(answered).toEqual(["/base/v1/logs", "/base/v1/traces", "/base/v1/logs"]);
  });

  it("sends the path, the headers of a file and plain protobuf without compression", async () => {
    const headersFile = join(directory, "headers");
    writeFileSync(headersFile, "X-Tenant: a b\n");
    let seen: unknown;
    await overHttp(
      (request, response) => {
        const chunks: Buffer[] = [];
        request.on("data", (chunk: Buffer) => chunks.push(chunk));
        request.on("end", () => {
          seen = { url: request.url, tenant: request.headers["x-tenant"], body: Buffer.concat(chunks) };
          response.end();
        });
      },
      { headersFile, compression: "none" },
    );
    expect(seen).toEqual({ url: "/base/v1/logs", tenant: "a b", body: Buffer.from(logs.body) });
  });

  it("is unavailable without its files, without a server, and after a cut answer", async () => {
    transport = new HttpTransport(optionsFor("http://127.0.0.1:1"));
    expect(await transport.send(logs, signal)).toMatchObject({ kind: "unavailable" });
    transport = new HttpTransport(optionsFor("http://127.0.0.1:1", { caFile: join(directory, "missing") }));
    const delivery = await transport.send(logs, signal);
    expect(delivery).toMatchObject({ kind: "unavailable", message: expect.stringContaining("missing") });
    const cut = await overHttp((request, response) => {
      request.resume();
      response.writeHead(200, { "content-length": "100" });
      response.write("x");
      setImmediate(() => response.destroy());
    });
    expect(cut).toMatchObject({ kind: "unavailable" });
  });

  it.skipIf(!hasOpenssl)("trusts the authority of the file alone, also after a renewal", async () => {
    const [authority, other] = [makeAuthority(directory, "one"), makeAuthority(directory, "two")];
    const { cert, key } = authority.issue("localhost", "DNS:localhost");
    const port = await portOf(
      createTlsServer({ cert, key }, (request, response) => {
        request.resume();
        response.end();
      }),
    );
    const caFile = join(directory, "ca.crt");
    writeFileSync(caFile, other.ca);
    transport = new HttpTransport(optionsFor(`https://localhost:${port}`, { caFile }));
    expect(await transport.send(logs, signal)).toMatchObject({ kind: "unavailable" });
    writeFileSync(caFile, authority.ca);
    expect(await transport.send(logs, signal)).toMatchObject({ kind: "accepted" });
  });
});

describe("OTLP over gRPC", () => {
  let grpc: GrpcServer | undefined;
  afterEach(async () => {
    transport?.[Symbol.dispose]();
    transport = undefined;
    await grpc?.shutdown();
    grpc = undefined;
  });

  async function overGrpc(
    answer: (metadata: Metadata, trailer: Metadata) => { rejectedLogRecords: bigint; errorMessage: string },
    options: Partial<TransportOptions> = {},
  ) {
    grpc = createGrpcServer();
    grpc.add(LogsServiceDefinition, {
      async export(request, context) {
        expect(request.resourceLogs).toHaveLength(1);
        return { partialSuccess: answer(context.metadata, context.trailer) };
      },
    });
    const port = await grpc.listen("127.0.0.1:0");
    transport = new GrpcTransport(optionsFor(`http://127.0.0.1:${port}`, options));
    return await transport.send(logs, signal);
  }
  const none = { rejectedLogRecords: 0n, errorMessage: "" };
  const failing = (code: Status) => () => {
    throw new ServerError(code, "why");
  };

  it("sends metadata of a file, and reads a partial success", async () => {
    const headersFile = join(directory, "headers");
    writeFileSync(headersFile, "authorization: Bearer one\n");
    let seen: string | undefined;
    const delivery = await overGrpc(
      (metadata) => {
        seen = metadata.get("authorization");
        return { rejectedLogRecords: 3n, errorMessage: "too old" };
      },
      { headersFile },
    );
    expect(delivery).toEqual({ kind: "accepted", rejected: 3, message: "too old" });
    expect(seen).toBe("Bearer one");
  });

  it.each([
    [Status.UNAVAILABLE, "unavailable"],
    [Status.ABORTED, "unavailable"],
    [Status.RESOURCE_EXHAUSTED, "unavailable"],
    [Status.INVALID_ARGUMENT, "refused"],
    [Status.UNAUTHENTICATED, "denied"],
    [Status.PERMISSION_DENIED, "denied"],
    [Status.INTERNAL, "denied"],
  ])("takes status %i for %s", async (code, kind) => {
    expect(await overGrpc(failing(code))).toMatchObject({ kind, message: `${Status[code]}: why` });
  });

  it("divides a request that is larger than the receiver takes", async () => {
    const failed = overGrpc(() => {
      throw new ServerError(Status.RESOURCE_EXHAUSTED, "grpc: received message larger than max (5 vs. 4)");
    });
    expect(await failed).toMatchObject({ kind: "tooLarge" });
  });

  it("waits as long as RetryInfo says", async () => {
    const value = RetryInfo.encode({ retryDelay: { seconds: 3n, nanos: 500_000_000 } }).finish();
    const details = [{ typeUrl: "type.googleapis.com/google.rpc.RetryInfo", value }];
    const delivery = await overGrpc((_, trailer) => {
      trailer.set("grpc-status-details-bin", RpcStatus.encode({ code: 8, message: "", details }).finish());
      throw new ServerError(Status.RESOURCE_EXHAUSTED, "quota");
    });
    expect(delivery).toEqual({
      kind: "unavailable",
      message: "RESOURCE_EXHAUSTED: quota",
      retryAfterMs: 3_500,
    });
  });

  it.skipIf(!hasOpenssl)("trusts the authority of the file alone, also after a renewal", async () => {
    const [authority, other] = [makeAuthority(directory, "one"), makeAuthority(directory, "two")];
    const { cert, key } = authority.issue("localhost", "DNS:localhost");
    grpc = createGrpcServer();
    grpc.add(LogsServiceDefinition, { export: async () => ({}) });
    const pairs = [{ cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }];
    const port = await grpc.listen("localhost:0", ServerCredentials.createSsl(null, pairs));
    const caFile = join(directory, "ca.crt");
    writeFileSync(caFile, other.ca);
    transport = new GrpcTransport(optionsFor(`https://localhost:${port}`, { caFile }));
    expect(await transport.send(logs, signal)).toMatchObject({ kind: "unavailable" });
    writeFileSync(caFile, authority.ca);
    expect(await transport.send(logs, signal)).toMatchObject({ kind: "accepted" });
  });

  it("knows a server without the service, and is unavailable without a server", async () => {
    await overGrpc(() => none);
    const traces = await transport!.send({ signal: "traces", body: new Uint8Array() }, signal);
    expect(traces).toMatchObject({ kind: "unsupported" });
    await grpc!.shutdown();
    grpc = undefined;
    expect(await transport!.send(logs, signal)).toMatchObject({ kind: "unavailable" });
  });
});

it("headers are lines of Name: value; a malformed line is named without its value", () => {
  expect(headersOf("# comment\n\nA: b: c\r\nX-Empty:\n", "/f")).toEqual({ a: "b: c", "x-empty": "" });
  expect(() => headersOf("A: b\nsecret", "/f")).toThrow('/f: line 2 is not "Name: value"');
  expect(() => headersOf("A: b\nsecret", "/f")).not.toThrow("secret");
});
