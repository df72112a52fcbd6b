import type { KubeApiClient, PathQuestion } from "@nodekeeper/core/kube";
import { FakeClock, NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { delegatedAccess } from "./delegated-access.ts";

const { signal } = new AbortController();

/** An API server that knows tokens "of-<name>", and lets accounts get the paths of `rights`. */
function setUp(rights: Record<string, string[]>) {
  const clock = new FakeClock();
  const asked = { tokens: 0, rights: 0, fail: undefined as Error | undefined };
  const client: Pick<KubeApiClient, "reviewToken" | "reviewAccessOf"> = {
    async reviewToken(token) {
      asked.tokens++;
      if (asked.fail) throw asked.fail;
      const [, username] = /^of-(\w+)$/.exec(token) ?? [];
      return { user: username ? { username, uid: "", groups: [], extra: {} } : undefined, reason: "" };
    },
    async reviewAccessOf({ username }, question) {
      asked.rights++;
      const { verb, path } = question as PathQuestion;
      return { allowed: verb === "get" && (rights[username] ?? []).includes(path), reason: "" };
    },
  };
  const check = delegatedAccess({ client, clock });
  const get = (token: string | undefined, path = "/metrics", verb = "get") =>
    check({ token, verb, path }, signal);
  return { clock, asked, get };
}

describe("a request from another machine", () => {
  it.each([
    ["without a token", undefined, "/metrics", "get", "unauthenticated"],
    ["with an unknown token", "stolen", "/metrics", "get", "unauthenticated"],
    ["for another path than its account may get", "of-prometheus", "/api/v1/pods", "get", "forbidden"],
    ["with another verb", "of-prometheus", "/metrics", "post", "forbidden"],
  ])("%s is refused", async (_, token, path, verb, code) => {
    const { get } = setUp({ prometheus: ["/metrics"] });
    await expect(get(token, path, verb)).rejects.toMatchObject({
      code,
      id: code === "unauthenticated" ? "NK1708" : "NK1709",
    });
  });

  it("for the API needs a right of its own: Kubernetes lets every account get /api/*", async () => {
    const { get } = setUp({ curious: ["/api/v1/pods"], operator: ["/nodekeeper/api/v1/pods"] });
    await expect(get("of-curious", "/api/v1/pods")).rejects.toThrow(
      "curious may not get /nodekeeper/api/v1/pods",
    );
    await get("of-operator", "/api/v1/pods");
  });

  it("names the account and the path that it may not get", async () => {
    const { get } = setUp({});
    await expect(get("of-prometheus")).rejects.toMatchObject({
      id: "NK1709",
      message: expect.stringContaining("prometheus may not get /metrics"),
    });
  });

  it("is reviewed once a minute, however many come", async () => {
    const { get, asked, clock } = setUp({ prometheus: ["/metrics"] });
    await Promise.all(Array.from({ length: 8 }, () => get("of-prometheus")));
    expect(asked).toMatchObject({ tokens: 1, rights: 1 });
    await clock.step(59_999);
    await get("of-prometheus");
    expect(asked.tokens).toBe(1);
    await clock.step(1);
    await get("of-prometheus");
    expect(asked).toMatchObject({ tokens: 2, rights: 2 });
  });

  it("for the page is reviewed once for all of its files, and none of its 30 addresses has to wait", async () => {
    const { get, asked } = setUp({
      operator: [
        "/nodekeeper/",
        ...Array.from({ length: 28 }, (_, at) => `/nodekeeper/api/v1/address-${at}`),
      ],
    });
    for (const path of ["/", "/page/main.js", "/page/main.css", "/page/view.js"])
      await get("of-operator", path);
    expect(asked).toMatchObject({ tokens: 1, rights: 1 });
    // The clock stands still.
    for (let at = 0; at < 28; at++) await get("of-operator", `/api/v1/address-${at}`);
    await expect(get("of-prometheus", "/page/main.js")).rejects.toThrow(
      "prometheus may not get /nodekeeper/",
    );
  });

  it("is allowed ten seconds after its account was given the right, and refused a minute after it was taken", async () => {
    const rights: Record<string, string[]> = {};
    const { get, clock } = setUp(rights);
    await expect(get("of-late")).rejects.toMatchObject({ code: "forbidden" });
    rights.late = ["/metrics"];
    await clock.step(10_000);
    await get("of-late");
    rights.late = [];
    await get("of-late");
    await clock.step(60_000);
    await expect(get("of-late")).rejects.toMatchObject({ code: "forbidden" });
  });

  it("with a made-up token can't use up the agent's calls to the API server: two reviews a second, ten at once", async () => {
    const { get, asked, clock } = setUp({ prometheus: ["/metrics"] });
    await get("of-prometheus");
    await clock.step(30_000);
    const codes = await Promise.all(
      Array.from({ length: 300 }, (_, at) =>
        get(`made-up-${at}`).catch((error: NodekeeperError) => error.code),
      ).concat(clock.step(2_000) as Promise<never>),
    );
    expect(asked.tokens).toBeLessThanOrEqual(1 + 10 + 4);
    expect(codes.filter((code) => code === "throttled").length).toBeGreaterThan(280);
    await get("of-prometheus");
  });

  it("with a made-up token occupies few of the agent's connections to the API server while reviews are slow", async () => {
    const clock = new FakeClock();
    let [running, most] = [0, 0];
    const check = delegatedAccess({
      client: {
        async reviewToken() {
          most = Math.max(most, ++running);
          await clock.sleep(5_000).finally(() => running--);
          return { user: undefined, reason: "" };
        },
        reviewAccessOf: async () => ({ allowed: false, reason: "" }),
      },
      clock,
    });
    const madeUp = Array.from({ length: 20 }, (_, at) =>
      check({ token: `made-up-${at}`, verb: "get", path: "/metrics" }, signal).catch(() => {}),
    );
    for (let second = 0; second < 30; second++) await clock.step(1_000);
    await Promise.all(madeUp);
    expect(most).toBe(2);
  });

  it("with a made-up token is refused at once if many wait for its review, so that readers have places", async () => {
    const { get, clock } = setUp({ prometheus: ["/metrics"] });
    await get("of-prometheus");
    // Uses up the reviews of unknown tokens, so that the next one waits.
    for (let at = 0; at < 8; at++) await get(`made-up-${at}`).catch(() => {});
    let waiting = 56;
    const madeUp = Array.from({ length: 56 }, () =>
      get("made-up")
        .catch(() => {})
        .finally(() => waiting--),
    );
    await clock.step(0);
    expect(waiting).toBe(8);
    await get("of-prometheus");
    await clock.step(2_000);
    await Promise.all(madeUp);
  });

  it("of an account that has read before does not wait for made-up tokens, also when it is reviewed again", async () => {
    const { get, asked, clock } = setUp({ prometheus: ["/metrics"] });
    await get("of-prometheus");
    await clock.step(60_000);
    const madeUp = Array.from({ length: 300 }, (_, at) => get(`made-up-${at}`).catch(() => {}));
    // The clock stands still: the made-up ones have used up what there is of reviews.
    await expect(get("made-up")).rejects.toMatchObject({ code: "throttled" });
    await clock.step(0);
    const before = asked.tokens;
    await get("of-prometheus");
    expect(asked.tokens).toBe(before + 1);
    await clock.step(2_000);
    await Promise.all(madeUp);
  });

  it("of an account that may get nothing holds up no reader, whatever paths it makes up", async () => {
    const { get, asked, clock } = setUp({ prometheus: ["/metrics"] });
    await get("of-prometheus");
    await clock.step(60_000);
    const madeUp = Array.from({ length: 300 }, (_, at) =>
      get("of-curious", `/made-up-${at}`).catch(() => {}),
    );
    // The clock stands still.
    await expect(get("of-curious", "/made-up")).rejects.toMatchObject({ code: "throttled" });
    const before = asked.tokens;
    await get("of-prometheus");
    expect(asked.tokens).toBe(before + 1);
    await clock.step(2_000);
    await Promise.all(madeUp);
    expect(asked.rights).toBeLessThanOrEqual(2 + 10 + 4);
  });

  it("is no fault of its token where the API server refuses the agent's own credentials", async () => {
    const { get, asked } = setUp({ prometheus: ["/metrics"] });
    asked.fail = new NodekeeperError("unauthenticated", "POST tokenreviews: Unauthorized", { id: "NK1206" });
    await expect(get("of-prometheus")).rejects.toMatchObject({
      code: "unavailable",
      id: "NK1206",
      message: expect.stringContaining("Unauthorized"),
    });
  });

  it("fails while the API server can't be asked, and is decided as soon as it can", async () => {
    const { get, asked } = setUp({ prometheus: ["/metrics"] });
    asked.fail = new NodekeeperError("unavailable", "connection refused");
    await expect(get("of-prometheus")).rejects.toMatchObject({ code: "unavailable" });
    asked.fail = undefined;
    await get("of-prometheus");
  });
});
