import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Authority, hasOpenssl } from "../packages/core/src/kube/testing/certificates.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { blocksOf, type DocShell, runBlock } from "./support/doc-blocks.ts";
import { issueCertificate, remotePort, reviewTokens } from "./support/remote.ts";

const REVIEWERS: Record<string, string> = {
  "token-of-prometheus": "prometheus",
  "token-of-viewer": "viewer",
  "token-of-other": "other",
};
const ALLOWED: Record<string, string> = { prometheus: "/metrics", viewer: "/nodekeeper/api/v1/node" };

describe.skipIf(!hasOpenssl)("a status server that other machines reach", () => {
  let cluster: TestCluster;
  let agent: RunningAgent;
  let authority: Authority;
  /** Of the server for other machines. */
  let port: number;

  beforeAll(async () => {
    cluster = await startCluster();
    reviewTokens(cluster, REVIEWERS, (user, path) => ALLOWED[user] === path);
    const files = issueCertificate(cluster.directory);
    ({ authority } = files);
    agent = await startAgent(cluster, { serverRemoteAddress: "0.0.0.0:0", ...files.flags });
    port = remotePort(agent);
  });

  afterAll(async () => {
    await agent?.stop();
    await cluster?.stop();
  });

  interface Answer {
    status: number | undefined;
    text: string;
    challenge: string | undefined;
  }

  function get(path: string, token?: string): Promise<Answer> {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path, headers, ca: authority.ca, agent: false };
      request(options, async (response) => {
        let text = "";
        for await (const chunk of response) text += chunk;
        const challenge = response.headers["www-authenticate"];
        resolve({ status: response.statusCode, text, challenge });
      })
        .on("error", reject)
        .end();
    });
  }

  it.each([
    ["the token of an account that may", "/metrics", "token-of-prometheus", 200, /nodekeeper_build_info/],
    [
      "the token of an account that may not",
      "/metrics",
      "token-of-other",
      403,
      /other may not get \/metrics/,
    ],
    [
      "a token that is allowed another path",
      "/api/v1/plugins",
      "token-of-prometheus",
      403,
      /prometheus may not/,
    ],
    ["an unknown token", "/metrics", "made-up", 401, /does not know the token/],
    ["no token", "/api/v1/configuration", undefined, 401, /a bearer token is required/],
    ["no token", "/livez", undefined, 200, /^ok$/],
    ["no token", "/livez/../metrics", undefined, 401, /a bearer token is required/],
  ])("answers with %s %s", async (_, path, token, status, text) => {
    const answer = await get(path, token);
    expect(answer).toMatchObject({ status, text: expect.stringMatching(text) });
    expect(answer.challenge).toBe(status === 401 ? 'Bearer realm="nodekeeper"' : undefined);
  });

  it("answers curl as docs/api.md shows", async () => {
    writeFileSync(join(cluster.directory, "ca.crt"), authority.ca);
    const [block] = blocksOf("docs/api.md", ({ kind }) => kind === "test");
    const shell: DocShell = {
      directory: cluster.directory,
      env: { TOKEN: "token-of-viewer" },
      replacements: [[/worker-1:10291/g, `127.0.0.1:${port}`]],
      programs: {},
    };
    expect(await runBlock(block!, cluster.directory, shell)).toEqual([]);
    const refused = await runBlock(block!, cluster.directory, { ...shell, env: { TOKEN: "token-of-other" } });
    expect(refused.join()).toContain("403");
  });

  it("speaks TLS only", async () => {
    await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();
  });

  it("leaves the one on loopback as it is: no TLS, no token", async () => {
    expect((await fetch(`http://${agent.address}/livez`)).status).toBe(200);
    expect((await agent.ready()).text).toMatch(/ReporterPublished/);
    // One registry for both: what the other server answered is counted here.
    await get("/metrics", "token-of-prometheus");
    const metrics = await agent.metrics();
    expect(metrics).toMatch(/^nodekeeper_server_requests_total\{handler="refused",code="401"\} /m);
    expect(metrics).toMatch(/^nodekeeper_server_health_check\{check="ReporterPublished"\} [01]$/m);
  });
});

it("is refused without a certificate, before anything is served", async () => {
  const cluster = await startCluster();
  try {
    await expect(startAgent(cluster, { serverAddress: "0.0.0.0:0" })).rejects.toThrow(
      /server\.address.*is reachable from other machines: expected a loopback address, or server\.tlsCertFile/,
    );
    const missing = {
      serverTlsCertFile: "/nonexistent/tls.crt",
      serverTlsPrivateKeyFile: "/nonexistent/tls.key",
    };
    await expect(startAgent(cluster, { serverRemoteAddress: "0.0.0.0:0", ...missing })).rejects.toThrow(
      /server\.tlsCertFile \/nonexistent\/tls\.crt .* can't be used: .*ENOENT/,
    );
  } finally {
    await cluster.stop();
  }
});
