import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createNetServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TopQuestion } from "@nodekeeper/api/decide";
import { ThresholdMetType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { NodekeeperError, Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { type Server, ServerError, Status } from "nice-grpc";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createEvictionMetrics } from "../metrics.ts";
import { observeJson } from "../observe/observed-pod.ts";
import { sourceOf } from "../testing/manager-setup.ts";
import { jsonPod } from "../testing/round-parts.ts";
import {
  offeredNames,
  type PluginService,
  podBytes,
  registrationOf,
  servePlugin,
} from "../testing/socket-plugin.ts";
import type { PluginRound } from "./plugin-round.ts";
import { EvictionPlugins } from "./plugins.ts";
import { PodOffer } from "./pod-offer.ts";
import type { TokenCheck } from "./token-check.ts";

const never = () => new Promise<never>(() => {});

let directory: string;
let servers: { stop: () => void }[];
let plugins: EvictionPlugins;
let tokenCheck: TokenCheck | undefined;
let callTimeout: number;
const { signal } = new AbortController();
const offer = new PodOffer(["a", "b"].map((name) => observeJson(jsonPod(name))));

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nke-"));
  servers = [];
  tokenCheck = undefined;
  callTimeout = 30_000;
  plugins = new EvictionPlugins({
    inTree: [sourceOf("inner")],
    settings,
    tokenCheck: () => tokenCheck,
    clock: systemClock,
    log: silentLogger,
    metrics: createEvictionMetrics(new Registry()),
  });
});
afterEach(() => {
  plugins.close();
  for (const server of servers) server.stop();
  rmSync(directory, { recursive: true });
});

const socketOf = (name: string) => join(directory, `${name}.sock`);

async function serve(name: string, service: PluginService = {}): Promise<Server> {
  const server = await servePlugin(socketOf(name), service);
  servers.push({ stop: () => server.forceShutdown() });
  await plugins.register(registrationOf(name, socketOf(name)), signal);
  return server;
}

const settings = () => ({ callTimeout, syncPeriod: 60_000 });

async function ask(pods = offer, signalOfRound = signal) {
  using round = plugins.startRound(settings());
  return await round.ask(pods, signalOfRound);
}

async function askTop(questions: readonly TopQuestion[]) {
  using round = plugins.startRound(settings());
  return await round.askTop(offer, questions, signal);
}

async function answersByName() {
  const answers = await ask();
  return Object.fromEntries(answers.map((one) => [one.plugin, one]));
}

describe("plugins on sockets", () => {
  it("are offered the pods and answer", async () => {
    const offered: string[][] = [];
    await serve("good", {
      getEvictPods: async (request) => {
        offered.push(offeredNames(request));
        return { evictPods: [{ pod: podBytes("a"), reason: "too old", forceEvict: true }] };
      },
      thresholdMet: async (request) => {
        offered.push(offeredNames(request));
        return { metType: ThresholdMetType.SOFT_MET, evictionScope: "memory", observedValue: 2 };
      },
    });
    const { good } = await answersByName();
    expect(offered).toEqual([
      ["a", "b"],
      ["a", "b"],
    ]);
    expect(good).toMatchObject({
      evictPods: { answer: { pods: [{ pod: { uid: "a" }, reason: "too old", force: true }] } },
      threshold: { answer: { metType: "soft", scope: "memory", observedValue: 2 } },
    });
  });

  it("are asked for top pods with the scope, the number and the pods of the question", async () => {
    const requests: unknown[] = [];
    await serve("top", {
      getTopEvictionPods: async (request) => {
        const { topN, evictionScope } = request;
        requests.push([offeredNames(request), Number(topN), evictionScope]);
        return { targetPods: [podBytes("b")] };
      },
    });
    const question = { plugin: "top", scope: "memory", topN: 1, candidateUids: null };
    expect(await askTop([question])).toMatchObject([
      { plugin: "top", top: { answer: { pods: [{ uid: "b" }] } } },
    ]);
    await askTop([{ ...question, candidateUids: ["b"], topN: 0 }]);
    expect(requests).toEqual([
      [["a", "b"], 1, "memory"],
      [["b"], 0, "memory"],
    ]);
  });

  it.each<[string, PluginService, RegExp]>([
    ["hangs", { getEvictPods: never }, /^(bad: GetEvictPods: )?deadline of 5 s exceeded$/],
    [
      "fails",
      { getEvictPods: () => Promise.reject(new ServerError(Status.INTERNAL, "out of luck: 100 %")) },
      /out of luck: 100 %/,
    ],
    [
      "floods with bytes",
      { getEvictPods: async () => ({ evictPods: [{ reason: "x".repeat(17 * 1024 * 1024) }] }) },
      /larger than 16777216 bytes/,
    ],
    [
      "floods with pods",
      { getEvictPods: async () => ({ evictPods: Array.from({ length: 100_000 }, () => ({})) }) },
      /names more than 5000 pods/,
    ],
    [
      "floods with reasons",
      {
        getEvictPods: async () => ({
          evictPods: Array.from({ length: 2_000 }, () => ({ pod: podBytes("a"), reason: "x".repeat(5_000) })),
        }),
      },
      /longer than 1048576 characters/,
    ],
    [
      "answers nonsense",
      { getEvictPods: async () => ({ evictPods: [{ pod: Uint8Array.of(0xff) }] }) },
      /can't be decoded/,
    ],
  ])("one that %s is reported, and does not affect others", async (_, service, message) => {
    await serve("bad", service);
    await serve("good", { thresholdMet: async () => ({ metType: ThresholdMetType.HARD_MET }) });
    // Long enough for the calls that are answered, also on a busy machine.
    if ("getEvictPods" in service && service.getEvictPods === never) callTimeout = 5_000;
    const { bad, good } = await answersByName();
    expect(bad?.evictPods).toMatchObject({ failure: expect.stringMatching(message) });
    expect(bad?.threshold).toHaveProperty("answer");
    expect(good).toMatchObject({ threshold: { answer: { metType: "hard" } } });
    const health = plugins.healthCheck().check();
    expect(health.ok).toBe(true);
    expect(health.message).toMatch(message);
    expect(health.message).not.toContain("good:");
  });

  it("pods are encoded only where a plugin behind a socket exists, once for all its calls", async () => {
    let encoded = 0;
    const observed = observeJson(jsonPod("a"));
    const pod = {
      ...observed,
      encoded: () => {
        encoded++;
        return observed.encoded();
      },
    };
    await ask(new PodOffer([pod]));
    expect(encoded).toBe(0);
    await serve("outer");
    await ask(new PodOffer([pod]));
    expect(encoded).toBe(1);
  });

  it("an in-tree plugin that fails fails the readiness check", async () => {
    plugins.replaceInTree(
      ["inner"],
      [sourceOf("inner", { thresholdMet: () => Promise.reject(new Error("no zoneinfo")) })],
    );
    await answersByName();
    expect(plugins.healthCheck().check()).toEqual({
      ok: false,
      message: "inner: ThresholdMet: no zoneinfo",
      errorId: "NK1603",
    });
  });

  it("a failure of GetTopEvictionPods no longer counts once the plugin is not asked", async () => {
    await serve("top", {
      getTopEvictionPods: () => Promise.reject(new ServerError(Status.INTERNAL, "no rank")),
    });
    await askTop([{ plugin: "top", scope: "memory", topN: 1, candidateUids: null }]);
    expect(plugins.status()).toMatchObject([
      { name: "inner" },
      { lastError: { message: "GetTopEvictionPods: no rank", id: "NK1603" } },
    ]);
    await askTop([]);
    expect(plugins.status().map(({ lastError }) => lastError)).toEqual([undefined, undefined]);
  });

  it("one that exits is reported, and is called again when it is back on its socket", async () => {
    const called = Promise.withResolvers<void>();
    const getEvictPods = () => {
      called.resolve();
      return never();
    };
    const server = await serve("mortal", { getEvictPods });
    const asked = answersByName();
    await called.promise;
    server.forceShutdown();
    expect((await asked).mortal?.evictPods).toHaveProperty("failure");
    expect((await answersByName()).mortal?.threshold).toHaveProperty("failure");
    rmSync(socketOf("mortal"), { force: true });
    const again = await servePlugin(socketOf("mortal"));
    servers.push({ stop: () => again.forceShutdown() });
    expect((await answersByName()).mortal?.threshold).toHaveProperty("answer");
    expect(plugins.healthCheck().check().ok).toBe(true);
  });

  it("one whose socket accepts and never speaks is late, also by the method", async () => {
    const mute = createNetServer(() => {});
    await new Promise<void>((resolve) => mute.listen(socketOf("mute"), resolve));
    servers.push({ stop: () => mute.close() });
    await plugins.register(registrationOf("mute", socketOf("mute")), signal);
    callTimeout = 500;
    const late = { failure: "deadline of 0.5 s exceeded", late: true };
    expect((await answersByName()).mute).toMatchObject({ evictPods: late, threshold: late });
  });

  it("end with the round that asks them", async () => {
    await serve("slow", { getEvictPods: never });
    const round = new AbortController();
    const asked = ask(offer, round.signal);
    round.abort(new NodekeeperError("stopped", "enough"));
    await expect(asked).rejects.toThrow("enough");
  });

  it("all send the same bytes", async () => {
    await serve("one");
    await serve("two");
    const first = offer.bytes;
    await answersByName();
    expect(offer.bytes).toBe(first);
  });
});

describe("a call that a plugin does not implement", () => {
  const question = { plugin: "partial", scope: "memory", topN: 1, candidateUids: null };
  let asked: string[];
  const lacking = (method: string) => async () => {
    asked.push(method);
    throw new ServerError(Status.UNIMPLEMENTED, "Method not implemented!");
  };
  const nothing = {
    getEvictPods: () => lacking("GetEvictPods")(),
    getTopEvictionPods: () => lacking("top")(),
  };
  const round = async () => {
    const { partial } = await answersByName();
    const [top] = await askTop([question]);
    return { ...partial, top: top?.top };
  };
  beforeEach(() => {
    asked = [];
  });

  it("is no failure: nothing to report, and not made again", async () => {
    await serve("partial", nothing);
    for (let at = 0; at < 3; at++)
      expect(await round()).toMatchObject({
        evictPods: { answer: { pods: [] } },
        threshold: { answer: { metType: "none" } },
        top: { answer: { pods: [] } },
      });
    expect(asked.sort()).toEqual(["GetEvictPods", "top"]);
    expect(plugins.status()).toMatchObject([{ name: "inner" }, { name: "partial", lastError: undefined }]);
    const { calls, durations } = plugins.exchanges("partial")!;
    const unimplemented = calls.filter((call) => call.isUnimplemented).map(({ call }) => call);
    expect(unimplemented.sort()).toEqual(["GetEvictPods", "GetTopEvictionPods"]);
    for (const { answer, error } of calls.filter((call) => call.isUnimplemented))
      expect({ answer, error }).toEqual({});
    expect(durations.filter(({ call }) => call === "GetEvictPods")).toEqual([
      { call: "GetEvictPods", at: expect.any(Number), ms: expect.any(Number), ok: true },
    ]);
  });

  it("is made again once the plugin registered again", async () => {
    await serve("partial", nothing);
    await round();
    const updated = await servePlugin(socketOf("updated"), {
      getEvictPods: async () => ({ evictPods: [{ pod: podBytes("a") }] }),
    });
    servers.push({ stop: () => updated.forceShutdown() });
    await plugins.register(registrationOf("partial", socketOf("updated"), 2), signal);
    expect(await round()).toMatchObject({ evictPods: { answer: { pods: [{ pod: { uid: "a" } }] } } });
    expect(plugins.exchanges("partial")?.calls.some((call) => call.isUnimplemented)).toBe(false);
  });

  it("is made again over another connection, to what is behind the socket then", async () => {
    const server = await serve("partial", nothing);
    await round();
    server.forceShutdown();
    rmSync(socketOf("partial"), { force: true });
    const updated = await servePlugin(socketOf("partial"), {
      getEvictPods: async () => ({ evictPods: [{ pod: podBytes("a") }] }),
    });
    servers.push({ stop: () => updated.forceShutdown() });
    await eventually(async () =>
      expect(await round()).toMatchObject({ evictPods: { answer: { pods: [{ pod: { uid: "a" } }] } } }),
    );
  });

  it("shows a plugin that has neither call of a round as failing, also while it is not called", async () => {
    await serve("partial", { ...nothing, thresholdMet: () => lacking("ThresholdMet")() });
    const message = "the plugin implements neither ThresholdMet nor GetEvictPods";
    const lastError = { message, id: "NK1616" };
    for (let at = 0; at < 2; at++) {
      await answersByName();
      expect(plugins.status()).toMatchObject([{ name: "inner" }, { name: "partial", lastError }]);
    }
  });
});

describe("registration", () => {
  it("refuses other versions, and reserves the names of in-tree plugins", () => {
    const registration = registrationOf("inner", "/x");
    expect([...plugins.inTreeNames]).toEqual(["inner"]);
    expect(() => plugins.validate({ ...registration, name: "a", versions: ["v9"] })).toThrow(/offers v9/);
    expect(() => plugins.validate({ ...registration, name: "a" })).not.toThrow();
  });

  it("replaces an older one, and its end does not touch a newer", async () => {
    await serve("a");
    const server = await servePlugin(socketOf("b"));
    servers.push({ stop: () => server.forceShutdown() });
    await plugins.register(registrationOf("a", socketOf("b"), 2), signal);
    plugins.deregister(registrationOf("a", socketOf("a"), 1), "disconnected");
    expect(plugins.names).toEqual(["a", "inner"]);
    expect((await answersByName()).a?.threshold).toHaveProperty("answer");
    plugins.deregister(registrationOf("a", socketOf("b"), 2), "disconnected");
    expect(plugins.names).toEqual(["inner"]);
  });

  it("is refused once eviction has stopped", async () => {
    plugins.close();
    await expect(serve("late")).rejects.toThrow("eviction has stopped");
    expect(plugins.names).toEqual(["inner"]);
  });

  it("in strict mode counts only with a token that passes", async () => {
    const seen: string[] = [];
    tokenCheck = async (plugin, token) => {
      seen.push(`${plugin} ${token}`);
      if (token !== "right") throw new NodekeeperError("unauthenticated", "wrong token");
    };
    await serve("good", { getToken: async () => ({ token: "right" }) });
    await expect(serve("bad", { getToken: async () => ({ token: "left" }) })).rejects.toThrow("wrong token");
    expect(seen).toEqual(["good right", "bad left"]);
    expect(plugins.names).toEqual(["good", "inner"]);
  });
});

it("replaces in-tree plugins, and takes no other's name", async () => {
  await serve("outer");
  plugins.replaceInTree([], [sourceOf("policy-a"), sourceOf("policy-b")]);
  expect(plugins.names).toEqual(["inner", "outer", "policy-a", "policy-b"]);
  plugins.replaceInTree(["policy-a", "policy-b"], [sourceOf("policy-b"), sourceOf("policy-c")]);
  expect(plugins.names).toEqual(["inner", "outer", "policy-b", "policy-c"]);
  expect(() => plugins.replaceInTree(["policy-b"], [sourceOf("outer")])).toThrow(/another eviction plugin/);
  expect(plugins.names).toContain("policy-b");
  // Nor is its own name taken from outside.
  expect([...plugins.inTreeNames]).toEqual(["inner", "policy-b", "policy-c"]);
  const answers = await ask();
  expect(answers.map(({ plugin }) => plugin).sort()).toEqual(["inner", "outer", "policy-b", "policy-c"]);
});

describe("a round", () => {
  const question = { plugin: "outer", scope: "memory", topN: 1, candidateUids: null };

  it.each([
    ["disconnects", "disconnected during the round"],
    ["registers again", "replaced during the round"],
  ])(
    "counts all answers of an instance that %s as failed, and does not call its successor",
    async (how, failure) => {
      let topCalls = 0;
      const service: PluginService = {
        getTopEvictionPods: async () => {
          topCalls++;
          return {};
        },
      };
      await serve("outer", service);
      using round = plugins.startRound(settings());
      const answers = await round.ask(offer, signal);
      const tops = await round.askTop(offer, [question], signal);
      expect(round.hasLost).toBe(false);
      expect(round.current(answers)).toEqual(answers);
      if (how === "disconnects") {
        plugins.deregister(registrationOf("outer", socketOf("outer")), "its socket was removed");
      } else {
        const again = await servePlugin(socketOf("again"), service);
        servers.push({ stop: () => again.forceShutdown() });
        await plugins.register(registrationOf("outer", socketOf("again"), 2), signal);
      }
      expect(round.hasLost).toBe(true);
      expect(round.current(answers).find(({ plugin }) => plugin === "outer")).toEqual({
        plugin: "outer",
        evictPods: { failure },
        threshold: { failure },
      });
      expect(round.current(answers).find(({ plugin }) => plugin === "inner")).toEqual(
        answers.find(({ plugin }) => plugin === "inner"),
      );
      expect(round.currentTops(tops)).toEqual([{ plugin: "outer", top: { failure } }]);
      expect(await round.askTop(offer, [question], signal)).toEqual([{ plugin: "outer", top: { failure } }]);
      expect(topCalls).toBe(1);
    },
  );

  it("calls an in-tree plugin that is replaced until it is over, and closes it then", async () => {
    const calls: string[] = [];
    const sourceNamed = (version: string) =>
      sourceOf("policy", {
        getTopEvictionPods: async () => {
          calls.push(version);
          return { pods: [], gracePeriodSeconds: null };
        },
        close: (hasSuccessor) => void calls.push(`${version} ${hasSuccessor ? "replaced" : "removed"}`),
      });
    const askTopOfPolicy = (round: PluginRound) =>
      round.askTop(offer, [{ ...question, plugin: "policy" }], signal);
    plugins.replaceInTree([], [sourceNamed("first")]);
    {
      using round = plugins.startRound(settings());
      plugins.replaceInTree(["policy"], [sourceNamed("second")]);
      await askTopOfPolicy(round);
      expect(calls).toEqual(["first"]);
    }
    expect(calls).toEqual(["first", "first replaced"]);
    {
      using next = plugins.startRound(settings());
      await askTopOfPolicy(next);
      expect(calls.at(-1)).toBe("second");
    }
    plugins.replaceInTree(["policy"], []);
    expect(calls.at(-1)).toBe("second removed");
  });
});
