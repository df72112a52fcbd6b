import { type UntilOptions, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeClock, silentLogger } from "../lib/index.ts";
import { truncated } from "./event-objects.ts";
import { EventRecorder, type EventRecorderOptions } from "./events.ts";
import {
  clientOf,
  type Exchange,
  sendJson,
  sendStatus,
  startServer,
  type TestClient,
  type TestServer,
} from "./testing/test-server.ts";

const pod = { apiVersion: "v1", kind: "Pod", name: "p", namespace: "ns", uid: "u" };
const evicted = { type: "Warning", reason: "Evicted", message: "memory", regarding: pod } as const;

let server: TestServer;
let connection: TestClient;
let clock: FakeClock;
let controller: AbortController;
let running: Promise<void>;

beforeEach(async () => {
  server = await startServer(({ response, body }) => sendJson(response, JSON.parse(body)));
  clock = new FakeClock();
  // No call may miss its deadline while a test steps over the pauses between attempts.
  connection = clientOf(server, { clock, burst: 1_000, deadlineMs: 86_400_000 });
  controller = new AbortController();
});

afterEach(async () => {
  controller.abort(new Error("test over"));
  await running;
  connection.client.close();
  await server[Symbol.asyncDispose]();
});

function start(options: Partial<EventRecorderOptions> = {}): EventRecorder {
  const { client, metrics } = connection;
  const fixed = { client, metrics, clock, log: silentLogger, component: "nodekeeper", host: "node1" };
  const recorder = new EventRecorder({ ...fixed, ...options });
  running = recorder.run(controller.signal);
  return recorder;
}

const counted = async (result: string) => {
  const { values } = await connection.metrics.events.get();
  return values.find(({ labels }) => labels.result === result)?.value ?? 0;
};
const untilCounted = (result: string, times: number, options?: UntilOptions) =>
  until(`${times} ${result}`, async () => (await counted(result)) >= times, options);
const bodies = () => server.exchanges.map(({ body }) => JSON.parse(body));

test("an Event is written whole", async () => {
  start().record(evicted);
  await untilCounted("created", 1);
  expect(server.exchanges[0]!.url.pathname).toBe("/api/v1/namespaces/ns/events");
  expect(bodies()[0]).toMatchObject({
    kind: "Event",
    metadata: { name: /^p\.[0-9a-f-]+$/, namespace: "ns" },
    involvedObject: pod,
    type: "Warning",
    reason: "Evicted",
    message: "memory",
    source: { component: "nodekeeper", host: "node1" },
    count: 1,
    firstTimestamp: "2023-11-14T22:13:20.000Z",
  });
});

test("repeats become one Event with a count, recreated when the server removed it", async () => {
  const recorder = start();
  recorder.record(evicted);
  await untilCounted("created", 1);
  recorder.record(evicted);
  recorder.record(evicted);
  await untilCounted("repeated", 1);
  expect(bodies()[1]).toMatchObject({ count: 3 });
  const serve = server.handler;
  server.handler = (exchange: Exchange) =>
    exchange.request.method === "PATCH" ? sendStatus(exchange.response, 404, "expired") : serve(exchange);
  recorder.record(evicted);
  await untilCounted("created", 2);
  expect(bodies().at(-1)).toMatchObject({ kind: "Event", count: 1 });
});

test("a flood about one object is limited, others are not held up, and the count is not lost", async () => {
  const recorder = start({ perObject: { burst: 2, perSecond: 1 } });
  for (const message of ["1", "2", "3"]) recorder.record({ ...evicted, message });
  recorder.record({ ...evicted, regarding: { ...pod, name: "q" } });
  await untilCounted("created", 3);
  expect(await counted("limited")).toBe(1);
  recorder.record({ ...evicted, message: "1" });
  await untilCounted("limited", 2);
  await clock.step(1_000);
  recorder.record({ ...evicted, message: "1" });
  await untilCounted("repeated", 1);
  expect(bodies().at(-1)).toMatchObject({ count: 3 });
});

test("the queue is bounded", async () => {
  server.handler = () => {};
  const recorder = start({ queueLength: 3 });
  recorder.record({ ...evicted, message: "first" });
  await until("the first is being written", () => server.exchanges.length === 1);
  for (let index = 0; index < 10; index++) recorder.record({ ...evicted, message: `${index}` });
  expect(await counted("dropped")).toBe(7);
});

test("failures are tried again for a while, then counted; a refusal is not tried again", async () => {
  server.handler = ({ response, body }) =>
    JSON.parse(body).message === "refused"
      ? sendStatus(response, 403, "no")
      : sendStatus(response, 503, "away");
  const recorder = start();
  recorder.record({ ...evicted, message: "refused" });
  await untilCounted("failed", 1);
  expect(server.exchanges).toHaveLength(1);
  recorder.record(evicted);
  await until("the first try came", () => server.exchanges.length === 2);
  await untilCounted("failed", 2, { clock, stepMs: 500 });
  expect(await counted("failed")).toBe(2);
  expect(server.exchanges).toHaveLength(5);
});

test("messages are cut to 1,024 bytes at a character's end", () => {
  expect(truncated("x".repeat(1_024))).toHaveLength(1_024);
  const cut = truncated("€".repeat(500));
  expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(1_024);
  expect(cut).toMatch(/^€+\.\.\.$/);
});
