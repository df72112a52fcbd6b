import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { type RequestOptions, request } from "node:https";
import { connect } from "node:tls";
import { until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasOpenssl } from "../packages/core/src/kube/testing/certificates.ts";
import { freePort } from "./e2e/support/free-port.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { issueCertificate, reviewTokens } from "./support/remote.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const FORM = { ...BROWSER, "content-type": "application/x-www-form-urlencoded" };
const SAME_ORIGIN = {
  "sec-fetch-site": "same-origin",
  "sec-fetch-mode": "navigate",
  "sec-fetch-dest": "document",
};

describe.skipIf(!hasOpenssl)("a browser on another machine", () => {
  const accounts: Record<string, string> = {
    "token-of-operator": "operator",
    "token-of-scraper": "<b>scraper</b>",
  };
  let cluster: TestCluster;
  let agent: RunningAgent;
  /** Stops the agent, and starts it again at the same addresses. */
  let restart: () => Promise<void>;
  let ca: string;
  let port: number;

  beforeAll(async () => {
    cluster = await startCluster();
    reviewTokens(
      cluster,
      accounts,
      (user, path) => path === "/metrics" || (user === "operator" && path.startsWith("/nodekeeper/")),
    );
    const { authority, flags } = issueCertificate(cluster.directory);
    ({ ca } = authority);
    port = await freePort();
    restart = async () => {
      await agent?.stop();
      agent = await startAgent(cluster, { serverRemoteAddress: `0.0.0.0:${port}`, ...flags });
    };
    await restart();
  });

  afterAll(async () => {
    await agent?.stop();
    await cluster?.stop();
  });

  interface Answer {
    status: number | undefined;
    headers: IncomingHttpHeaders;
    text: string;
  }

  async function send(path: string, options: RequestOptions & { body?: string } = {}): Promise<Answer> {
    const { body, ...others } = options;
    const call = request({ host: "127.0.0.1", port, path, ca, agent: false, ...others });
    call.on("error", () => {});
    call.end(body);
    const [response] = await once(call, "response");
    let text = "";
    for await (const chunk of response.setEncoding("utf8")) text += chunk;
    return { status: response.statusCode, headers: response.headers, text };
  }

  const get = (path: string, headers: Record<string, string> = {}) => send(path, { headers });
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    send(path, { method: "POST", headers: { ...FORM, ...SAME_ORIGIN, ...headers }, body });

  /** Signs in, and gives the header by which the browser is known from then on. */
  async function signedIn(token = "token-of-operator"): Promise<{ cookie: string }> {
    const { status, headers } = await post("/", `token=${token}`);
    expect([status, headers.location]).toEqual([303, "./"]);
    return { cookie: headers["set-cookie"]![0]!.split(";")[0]! };
  }

  it("is asked for a token where it asks for the page, and where to get one", async () => {
    const { status, headers, text } = await get("/", BROWSER);
    expect(status).toBe(401);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "www-authenticate": 'Bearer realm="nodekeeper"',
      "cache-control": "no-store",
      "content-security-policy": expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[^']+'; .*form-action 'self'/,
      ),
    });
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(text).toContain('<form method="post">');
    expect(text).toContain("kubectl create token");
    expect(text).toContain("/nodekeeper/*");
    expect(text).not.toContain('role="alert"');
  });

  it("is the only one that is: programs and the page's own requests get the error", async () => {
    const json = { error: expect.objectContaining({ code: "unauthenticated", id: "NK1708" }) };
    for (const [path, headers] of [
      ["/", {}],
      ["/api/v1/node", {}],
      ["/api/v1/node", BROWSER],
      ["/page/main.js", {}],
    ] as const) {
      const { status, text } = await get(path, headers);
      expect([path, status, JSON.parse(text)]).toEqual([path, 401, json]);
    }
  });

  it("reads everything with the cookie that it gets for a token, as with the token itself", async () => {
    const cookie = await signedIn();
    const page = await get("/", { ...BROWSER, ...cookie });
    expect(page.status).toBe(200);
    expect(page.text).not.toContain("<form");
    for (const path of ["/api/v1/node", "/metrics", "/api/v1/plugins"])
      expect([path, (await get(path, { ...SAME_ORIGIN, ...cookie })).status]).toEqual([path, 200]);
    // What the token's account may not get, the cookie does not open.
    accounts["token-of-reader"] = "reader";
    const reader = await post("/", "token=token-of-reader");
    expect(reader.status).toBe(403);
  });

  it("keeps an encrypted cookie that no script, no plain connection and no other site's request gets", async () => {
    const { headers } = await post("/", "token=token-of-operator");
    const [cookie, ...others] = headers["set-cookie"]!;
    expect(others).toEqual([]);
    expect(cookie).toMatch(/^__Host-nodekeeper=[\w-]+; Path=\/; Secure; HttpOnly; SameSite=Lax$/);
    expect(cookie).not.toContain("token-of-operator");
  });

  it.each([
    ["no token", "token=", 400, /not a token/],
    ["a form without the field", "other=x", 400, /not a token/],
    ["something with spaces", "token=a+b", 400, /not a token/],
    [
      "a token that the API server does not know",
      "token=made-up%3Cscript%3E",
      401,
      /expired, or is not one of this cluster/,
    ],
    [
      "the token of an account without the right",
      "token=token-of-scraper",
      403,
      /&lt;b&gt;scraper&lt;\/b&gt; may not get \/nodekeeper\//,
    ],
    [
      "a token too long for a cookie",
      `token=xyz0123${randomBytes(6_000).toString("base64url")}`,
      413,
      /too long/,
    ],
    ["more than a form may have", `token=${"x".repeat(100_000)}`, 413, /too long/],
  ])("gets the form again for %s, with what to do", async (_, body, status, problem) => {
    const answer = await post("/", body);
    expect(answer.status).toBe(status);
    expect(answer.headers["set-cookie"]).toBeUndefined();
    const [, alert] = /<p role="alert"[^>]*>(.*?)<\/p>/.exec(answer.text) ?? [];
    expect(alert).toMatch(problem);
    expect(answer.text).toContain('<form method="post">');
    // The token is not sent back, and not in the log.
    for (const text of [answer.text, JSON.stringify(agent.logLines)])
      expect(text).not.toMatch(/made-up|token-of-scraper|xyz0123|xxxx/);
  });

  it("is asked again when its token has expired, or the agent does not know its cookie", async () => {
    accounts["token-of-today"] = "operator";
    const cookie = await signedIn("token-of-today");
    expect((await get("/", { ...BROWSER, ...cookie })).status).toBe(200);
    delete accounts["token-of-today"];
    await restart();
    for (const header of [cookie, { cookie: `${cookie.cookie.slice(0, -9)}AAAAAAAAA` }]) {
      const { status, text } = await get("/", { ...BROWSER, ...header });
      expect(status).toBe(401);
      expect(text).toMatch(/role="alert"[^>]*>The token has expired/);
      expect((await get("/api/v1/node", header)).status).toBe(401);
    }
  });

  it("stays signed in when the agent starts again", async () => {
    const cookie = await signedIn();
    await restart();
    expect((await get("/api/v1/node", cookie)).status).toBe(200);
  });

  it("is decided on by its Authorization header where it has one, whatever the cookie", async () => {
    const cookie = await signedIn();
    for (const [authorization, status] of [
      ["Bearer token-of-operator", 200],
      ["Bearer token-of-scraper", 403],
      ["Bearer unknown", 401],
      ["Basic b3BlcmF0b3I6", 401],
    ] as const)
      expect([authorization, (await get("/api/v1/node", { ...cookie, authorization })).status]).toEqual([
        authorization,
        status,
      ]);
  });

  it("signs out by a form, not by a link", async () => {
    const cookie = await signedIn();
    const form = await get("/sign-out", { ...BROWSER, ...cookie });
    expect([form.status, form.headers["set-cookie"]]).toEqual([200, undefined]);
    expect(form.text).toContain('<form method="post">');
    const { status, headers } = await post("/sign-out", "", cookie);
    expect([status, headers.location]).toEqual([303, "./"]);
    expect(headers["set-cookie"]).toEqual([
      "__Host-nodekeeper=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Lax",
    ]);
  });

  it.each([
    ["a form of another site", { "sec-fetch-site": "cross-site", origin: "https://evil.example" }],
    ["a form of another port of the host", { "sec-fetch-site": "same-site" }],
    [
      "a form of another origin, of a browser without fetch metadata",
      { "sec-fetch-site": "", origin: "https://evil.example" },
    ],
    ["a form of a sandboxed frame", { "sec-fetch-site": "", origin: "null" }],
  ])("can't be signed in or out by %s", async (_, headers) => {
    for (const path of ["/", "/sign-out"]) {
      const given = Object.fromEntries(
        Object.entries({ ...FORM, ...SAME_ORIGIN, ...headers }).filter(([, value]) => value !== ""),
      );
      const answer = await send(path, { method: "POST", headers: given, body: "token=token-of-operator" });
      expect([path, answer.status, answer.headers["set-cookie"]]).toEqual([path, 403, undefined]);
    }
  });

  it("can post forms to these two addresses and nowhere else", async () => {
    for (const path of ["/api/v1/node", "/metrics", "/livez", "/page/main.js", "//", "/sign-out/x"]) {
      const { status, headers } = await post(path, "token=token-of-operator");
      expect([path, status, headers["set-cookie"]]).toEqual([path, 405, undefined]);
    }
    expect((await send("/", { method: "PUT", headers: FORM, body: "" })).status).toBe(405);
  });

  it("can't keep the kubelet's probes out by forms that it sends slowly", async () => {
    const head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n";
    const slow = Array.from({ length: 64 }, () => {
      const socket = connect({ host: "127.0.0.1", port, ca });
      socket.on("error", () => {});
      socket.write(head);
      return socket;
    });
    try {
      const closed = slow.map((socket) => once(socket, "close"));
      // The server waits for the form then.
      await Promise.all(slow.map((socket, at) => Promise.race([once(socket, "data"), closed[at]])));
      expect((await get("/livez")).status).toBe(200);
      await Promise.race(closed);
    } finally {
      for (const socket of slow) socket.destroy();
    }
  });

  it("is counted: how often it was asked for a token, and how often it entered one that is not known", async () => {
    expect((await post("/", "token=unknown")).status).toBe(401);
    await until("the form is in the metrics", async () =>
      /^nodekeeper_server_requests_total\{handler="sign-in",code="401"\} [1-9]/m.test(await agent.metrics()),
    );
  });

  it("has nothing of this on the loopback, where no token is needed", async () => {
    const base = `http://${agent.address}`;
    expect((await fetch(base, { headers: BROWSER })).status).toBe(200);
    expect((await fetch(`${base}/sign-out`)).status).toBe(404);
    const body = new URLSearchParams({ token: "token-of-operator" });
    for (const path of ["/", "/sign-out"]) {
      const { status, headers } = await fetch(base + path, { method: "POST", body });
      expect([status, headers.get("set-cookie")]).toEqual([405, null]);
    }
  });
});
