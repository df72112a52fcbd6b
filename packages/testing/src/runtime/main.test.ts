import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { status } from "@grpc/grpc-js";
import { RuntimeServiceDefinition } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { createClient } from "nice-grpc";
import { afterEach, describe, expect, it } from "vitest";
import { faultsOf } from "./fault-rules.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0).reverse()) end();
});

interface Line {
  line?: number;
  event?: string;
  podUid?: string;
  at?: number;
  monotonic?: number;
  error?: string;
}

/** The program in a process of its own, and what it prints. */
function program(...flags: string[]) {
  const directory = mkdtempSync(join(tmpdir(), "nksim-"));
  ends.push(() => rmSync(directory, { recursive: true, force: true }));
  const socket = join(directory, "cri.sock");
  const script = fileURLToPath(new URL("./main.ts", import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [script, "--socket", socket, ...flags]);
  ends.push(() => child.kill("SIGKILL"));
  const exit = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const until = async (isLast: (line: Line) => boolean) => {
    const read: Line[] = [];
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error("the program ended");
      read.push(JSON.parse(value));
      if (isLast(read.at(-1)!)) return read;
    }
  };
  let asked = 0;
  const send = async (command: object | string) => {
    child.stdin!.write(`${typeof command === "string" ? command : JSON.stringify(command)}\n`);
    const number = ++asked;
    return await until(({ line }) => line === number);
  };
  const dial = () => {
    const channel = dialUnix(socket, { maxReceiveBytes: 16 * 2 ** 20 });
    ends.push(() => channel.close());
    return createClient(RuntimeServiceDefinition, channel);
  };
  return { child, socket, exit, until, send, dial };
}

describe("the program", () => {
  it("serves, runs commands and reports when, and ends with its input", async () => {
    const { until, send, dial, child, exit, socket } = program("--pods", "3", "--containers", "2");
    expect(await until(() => true)).toMatchObject([{ ready: true, pods: 3, containers: 6 }]);
    const client = dial();
    expect((await client.listContainers({})).containers).toHaveLength(6);

    const before = { at: Date.now() - 1, monotonic: Number(process.hrtime.bigint()) / 1e6 };
    const changed = await send({ op: "change", pods: 2 });
    expect(changed.map(({ event }) => event)).toEqual([
      ...["stopped", "deleted", "created", "started"],
      ...["stopped", "deleted", "created", "started"],
      undefined,
    ]);
    expect(new Set(changed.map(({ podUid }) => podUid)).size).toBe(3);
    // Both clocks are ours as well.
    const after = { at: Date.now() + 1, monotonic: Number(process.hrtime.bigint()) / 1e6 };
    for (const { at, monotonic } of changed) {
      expect(at).toBeGreaterThan(before.at);
      expect(monotonic).toBeGreaterThan(before.monotonic);
      expect(at).toBeLessThan(after.at);
      expect(monotonic).toBeLessThan(after.monotonic);
    }

    await send({ op: "faults", faults: [{ method: "Version", code: "UNAVAILABLE", times: 1 }] });
    await expect(client.version({})).rejects.toMatchObject({ code: status.UNAVAILABLE });
    expect(await client.version({})).toMatchObject({ runtimeName: "simulated" });

    await send({
      op: "admit",
      pod: { uid: "u9", name: "p9", namespace: "default", containers: [{ name: "a" }] },
    });
    expect((await client.listContainers({})).containers).toHaveLength(7);
    await send({ op: "remove", uid: "u9", gracePeriodSeconds: 0 });
    expect((await client.listContainers({})).containers).toHaveLength(6);
    const played = await send({ op: "play", perSecond: 100, seconds: 0.05 });
    expect(played.filter(({ event }) => event === "started")).toHaveLength(5);

    child.stdin!.end();
    expect(await exit).toBe(0);
    expect(existsSync(socket)).toBe(false);
  });

  it("refuses what is no command, and continues", async () => {
    const { until, send } = program("--no-print-events", "--scenario", "everyday", "--pace", "1000");
    await until(() => true);
    const refusals: [string | object, RegExp][] = [
      ["{", /not a line of JSON/],
      ["null", /op "undefined" is none of/],
      [{ op: "explode" }, /op "explode" is none of faults,/],
      [{ op: "play", perSecond: 0, seconds: 1 }, /play: perSecond/],
      [{ op: "events", mode: "loud" }, /events: mode/],
      [{ op: "faults", faults: [{ method: "Version" }] }, /faults\[0\]: names none/],
      [{ op: "faults", faults: [{ hang: true }, { code: "SAD" }] }, /faults\[1\]\.code: "SAD"/],
    ];
    for (const [command, message] of refusals) {
      const [answer] = await send(command);
      expect(answer!.error).toMatch(message);
    }
    expect(await send({ op: "restart", awayMs: 10 })).toMatchObject([{ line: refusals.length + 1 }]);
  });

  it("prints how it is used", async () => {
    const { child, exit } = program("--events", "loud");
    let printed = "";
    child.stderr!.on("data", (data) => {
      printed += data;
    });
    expect(await exit).toBe(2);
    expect(printed).toMatch(/^usage: /);
  });
});

describe("faultsOf", () => {
  const call = { method: "ContainerStatus", podUid: "u1", id: "c1" };
  it.each([
    [[], undefined],
    [[{ method: "Version", hang: true as const }], undefined],
    [[{ podUid: "u2", hang: true as const }], undefined],
    [[{ podUid: "u1", method: "ContainerStatus", delayMs: 5 }], { delayMs: 5 }],
    [[{ id: "c1", delayMs: 0 }, { hang: true as const }], { delayMs: 0 }],
    [[{ times: 0, hang: true as const }, { bytes: "AAE=" }], { bytes: Buffer.from([0, 1]) }],
    [[{ garbage: 3 }], { bytes: Buffer.from([255, 255, 255]) }],
    [[{ code: "INTERNAL" }], { code: status.INTERNAL, message: expect.stringMatching(/INTERNAL/) }],
  ])("makes of %j what a call meets", (rules, expected) => {
    expect(faultsOf(rules)(call)).toEqual(expected);
  });
});
