import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { systemClock } from "@nodekeeper/core/lib";
import { afterEach, describe, expect, it } from "vitest";
import { type CallFault, SimulatedCri, SimulatedRuntime } from "../index.ts";
import { eventually } from "../until.ts";
import { simulations } from "./testing/serve.ts";

const { serve, end } = simulations();
afterEach(end);

const criAt = (socket: string) =>
  new SimulatedCri({ runtime: new SimulatedRuntime({ clock: systemClock }), socket, clock: systemClock });

describe("the socket", () => {
  it("of another process is left alone, also by who could not start", async () => {
    const { cri, bare } = await serve();
    const other = criAt(cri.socket);
    await expect(other.start()).rejects.toMatchObject({ code: "conflict" });
    await other.stop();
    expect(await bare.version({})).toMatchObject({ runtimeApiVersion: "v1" });
    expect(existsSync(cri.socket)).toBe(true);
  });

  it("is not put in place of a file that is none", async () => {
    const { directory } = await serve();
    const path = join(directory, "precious");
    writeFileSync(path, "data");
    const cri = criAt(path);
    await expect(cri.start()).rejects.toMatchObject({ code: "conflict" });
    await cri.stop();
    expect(readFileSync(path, "utf8")).toBe("data");
  });

  it("that a killed process left behind is replaced, and removed at the end", async () => {
    const { directory } = await serve();
    const path = join(directory, "stale.sock");
    await leaveSocketBehind(path);
    const cri = criAt(path);
    await cri.start();
    expect(existsSync(path)).toBe(true);
    await cri.stop();
    expect(existsSync(path)).toBe(false);
  });
});

// A socket file without a listener: renamed while it was served, so that closing does not remove it.
async function leaveSocketBehind(path: string): Promise<void> {
  const server: Server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.old`, resolve));
  await rename(`${path}.old`, path);
  await new Promise((resolve) => server.close(resolve));
  expect(existsSync(path)).toBe(true);
}

describe("stop", () => {
  it("waits for no open stream, hung or delayed call, and fails them", async () => {
    const { cri, bare, runtime } = await serve({
      faults: ({ method }) => {
        if (method === "Version") return { hang: true };
        return method === "Status" ? { delayMs: 86_400_000 } : undefined;
      },
      eventFaults: { delayMs: 86_400_000 },
    });
    const stream = async () => {
      for await (const _ of bare.getContainerEvents({}));
    };
    const calls = [stream(), stream(), bare.version({}), bare.status({})].map((call) =>
      call.then(
        () => "answered",
        (error: { code: status }) => error.code,
      ),
    );
    await eventually(() => expect(cri.listeners).toBe(2));
    runtime.runSandbox({ uid: "u1", name: "p1", namespace: "default" });
    await cri.stop();
    expect(await Promise.all(calls)).toEqual(calls.map(() => status.UNAVAILABLE));
    expect(cri.listeners).toBe(0);
  });
});

describe("faults", () => {
  it.each<[string, CallFault, object]>([
    ["a status", { code: status.RESOURCE_EXHAUSTED, message: "full" }, { code: status.RESOURCE_EXHAUSTED }],
    ["garbage", { bytes: Buffer.from([0x0a, 0xff, 0xff]) }, { code: status.INTERNAL }],
    [
      "20 MiB, to a client that takes 16",
      { bytes: Buffer.alloc(20 * 2 ** 20) },
      { code: status.RESOURCE_EXHAUSTED },
    ],
  ])("%s hits the calls of one pod, and no other", async (_name, fault, expected) => {
    const { cri, bare, runtime } = await serve();
    const [hit, other] = ["hit", "other"].map((uid) =>
      runtime.runSandbox({ uid, name: uid, namespace: "default" }),
    );
    cri.faults = ({ podUid }) => (podUid === "hit" ? fault : undefined);
    await expect(bare.podSandboxStatus({ podSandboxId: hit! })).rejects.toMatchObject(expected);
    expect((await bare.podSandboxStatus({ podSandboxId: other! })).status?.id).toBe(other);
    cri.faults = () => undefined;
    expect((await bare.podSandboxStatus({ podSandboxId: hit! })).status?.id).toBe(hit);
  });
});
