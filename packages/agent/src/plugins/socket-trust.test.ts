import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SocketTrust, type SocketTrustOptions } from "./socket-trust.ts";
import { type RunningManager, servePlugin, startManager, temporaryDirectory } from "./testing/setup.ts";

const STRANGER = 65_534;
const isRoot = process.getuid?.() === 0;

let directory: { path: string; remove: () => void };
const servers: Server[] = [];
const at = (name: string) => join(directory.path, name);

beforeEach(() => {
  directory = temporaryDirectory();
  mkdirSync(at("plugins"), { mode: 0o750 });
  mkdirSync(at("elsewhere"), { mode: 0o750 });
});

afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  directory.remove();
});

async function listen(path: string): Promise<string> {
  const server = createServer((socket) => socket.destroy());
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return path;
}

function trust(options: Partial<SocketTrustOptions> = {}): SocketTrust {
  return new SocketTrust({
    directories: [at("plugins")],
    endpointDirectories: [],
    allowedUids: [],
    foreignSockets: [],
    ...options,
  });
}

describe.runIf(isRoot)("a registration socket", () => {
  it("of the agent's own user is accepted", async () => {
    await trust().checkRegistration(await listen(at("plugins/a.sock")));
  });

  it("of another user is refused, naming the user and the setting, unless the user is allowed", async () => {
    const path = await listen(at("plugins/a.sock"));
    chownSync(path, STRANGER, STRANGER);
    await expect(trust().checkRegistration(path)).rejects.toMatchObject({
      code: "forbidden",
      message: `socket ${path} is owned by user ID ${STRANGER}; accepted user IDs: 0 (plugins.allowedUids)`,
    });
    await trust({ allowedUids: [STRANGER] }).checkRegistration(path);
  });

  it("that another user's link leads to is refused, and so is a link to another user's socket", async () => {
    const own = await listen(at("elsewhere/own.sock"));
    symlinkSync(own, at("plugins/link.sock"));
    await trust().checkRegistration(at("plugins/link.sock"));
    lchownSync(at("plugins/link.sock"), STRANGER, STRANGER);
    await expect(trust().checkRegistration(at("plugins/link.sock"))).rejects.toThrow(
      /is owned by user ID 65534/,
    );

    const theirs = await listen(at("elsewhere/theirs.sock"));
    chownSync(theirs, STRANGER, STRANGER);
    symlinkSync(theirs, at("plugins/other.sock"));
    await expect(trust().checkRegistration(at("plugins/other.sock"))).rejects.toThrow(
      /is owned by user ID 65534/,
    );
  });

  it.each([
    ["writable by every user", 0o777, 0, /directory .*plugins \(mode 777\) is writable by all users/],
    ["writable by a group of users", 0o770, STRANGER, /is writable by group 65534; run chmod go-w on it/],
    ["sticky as /tmp, where the owners of sockets count", 0o1777, 0, undefined],
    ["writable by root's group", 0o770, 0, undefined],
  ])("in a directory that is %s: refused %s", async (_, mode, gid, refusal) => {
    const path = await listen(at("plugins/a.sock"));
    chownSync(at("plugins"), 0, gid);
    chmodSync(at("plugins"), mode);
    const checked = trust().checkRegistration(path);
    if (refusal)
      await expect(checked).rejects.toMatchObject({
        id: "NK1313",
        message: expect.stringMatching(refusal),
      });
    else await checked;
  });

  it("in a directory of another user below the watched directory is refused", async () => {
    mkdirSync(at("plugins/theirs"));
    const path = await listen(at("plugins/theirs/a.sock"));
    chownSync(at("plugins/theirs"), STRANGER, STRANGER);
    await expect(trust().checkRegistration(path)).rejects.toThrow(
      /directory .*theirs is owned by user ID 65534/,
    );
  });
});

describe("an endpoint", () => {
  it("lies in a watched directory or an endpoint directory", async () => {
    await trust().checkEndpoint(await listen(at("plugins/api.sock")));
    const path = await listen(at("elsewhere/api.sock"));
    await trust({ endpointDirectories: [at("elsewhere")] }).checkEndpoint(path);
    await expect(trust().checkEndpoint(path)).rejects.toMatchObject({
      code: "forbidden",
      id: "NK1310",
      message: expect.stringContaining(`is outside of ${at("plugins")}; serve it there`),
    });
  });

  it("can't reach beyond it by a link or by ..", async () => {
    const runtime = await listen(at("elsewhere/containerd.sock"));
    symlinkSync(runtime, at("plugins/api.sock"));
    await expect(trust().checkEndpoint(at("plugins/api.sock"))).rejects.toThrow(/is outside of/);
    await expect(trust().checkEndpoint(`${at("plugins")}/../elsewhere/containerd.sock`)).rejects.toThrow(
      /is outside of/,
    );
  });

  it("is never the container runtime's socket or the agent's own", async () => {
    const own = await listen(at("plugins/nodekeeper.sock"));
    await expect(trust({ foreignSockets: [own] }).checkEndpoint(own)).rejects.toMatchObject({
      id: "NK1311",
      message: expect.stringContaining("is a socket of the agent or the container runtime"),
    });
  });

  it("that is missing is tried again", async () => {
    await expect(trust().checkEndpoint(at("plugins/none.sock"))).rejects.toMatchObject({
      code: "unavailable",
      id: "NK1309",
    });
  });
});

describe.runIf(isRoot)("a plugin that is not trusted", () => {
  let running: RunningManager;
  afterEach(() => running.stop());

  it("is notified of the reason, is asked nothing, and is listed with it", async () => {
    const plugin = await servePlugin(at("plugins/p.sock"));
    chownSync(plugin.path, STRANGER, STRANGER);
    running = startManager(at("plugins"));
    const reason = /is owned by user ID 65534; accepted user IDs: 0/;
    await until("it is notified", () => plugin.notices.some(({ error }) => reason.test(error)));
    expect(running.at(plugin.path)).toMatchObject({
      state: "refused",
      reason: expect.stringMatching(reason),
      errorId: "NK1312",
    });
    expect(plugin.infoCalls).toBe(0);
    expect(running.handler.calls).toEqual([]);
    plugin.close();
  });
});
