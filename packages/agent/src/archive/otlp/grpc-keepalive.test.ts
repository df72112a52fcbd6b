import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import {
  ExportLogsServiceRequest,
  LogsServiceDefinition,
} from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import { systemClock } from "@nodekeeper/core/lib";
import { createServer as createGrpcServer } from "nice-grpc";
import { expect, it } from "vitest";
import { GrpcTransport } from "./grpc-transport.ts";

it("replaces a connection that was dropped without notice", async () => {
  const grpc = createGrpcServer();
  grpc.add(LogsServiceDefinition, { export: async () => ({}) });
  const port = await grpc.listen("127.0.0.1:0");
  const pairs: [Socket, Socket][] = [];
  const proxy = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    client.pipe(upstream).pipe(client);
    pairs.push([client, upstream]);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const options = { endpoint, caFile: "", headersFile: "", compression: "none", userAgent: "test" } as const;
  using transport = new GrpcTransport(options, { timeMs: 200, timeoutMs: 1_000 });
  const send = async () => {
    const body = ExportLogsServiceRequest.encode({ resourceLogs: [] }).finish();
    const { kind } = await transport.send({ signal: "logs", body }, AbortSignal.timeout(20_000));
    return kind;
  };
  expect(await send()).toBe("accepted");
  for (const socket of pairs.flat()) socket.unpipe();
  await systemClock.sleep(400);
  expect(await send()).toBe("unavailable");
  expect(await send()).toBe("accepted");
  expect(pairs).toHaveLength(2);
  for (const socket of pairs.flat()) socket.destroy();
  proxy.close();
  await grpc.shutdown();
});
