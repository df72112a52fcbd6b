import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readKubeconfig } from "./kubeconfig.ts";
import { redactSecrets } from "./redact.ts";
import { clientOf, type Handler, nodes, sendJson, sendStatus, startServer } from "./testing/test-server.ts";

const JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl";

describe("what another side quotes of a request", () => {
  it.each([
    ["an opaque token", "refused token hunter2-hunter2.", "refused token [redacted]."],
    ["a JSON Web Token of another", `token ${JWT} expired`, "token [redacted] expired"],
    ["a header", "Authorization: Bearer abc.def-ghi= end", "Authorization: Bearer [redacted] end"],
    ["a basic header", "authorization: Basic dXNlcjpwYXNz", "authorization: Basic [redacted]"],
    ["nothing secret", "the basics are here: 42 of 43", "the basics are here: 42 of 43"],
  ])("%s", (_, text, expected) =>
    expect(redactSecrets(text, "hunter2-hunter2", undefined, "x")).toBe(expected),
  );
});

describe("a token in requests is in no error, whatever the server answers with it", () => {
  const token = "opaque-token-of-the-agent";
  it.each<[string, Handler]>([
    [
      "a Status",
      ({ request, response }) => sendStatus(response, 403, `no: ${request.headers.authorization}`),
    ],
    ["JSON for no Status", ({ response }) => sendJson(response, { message: token }, 500)],
    ["a page", ({ response }) => response.writeHead(502, { "content-type": "text/html" }).end(`<p>${token}`)],
    ["a success that is no JSON", ({ response }) => response.end(`{"a": ${token}`)],
    [
      "a redirect",
      ({ response }) => response.writeHead(302, { location: `/login?token=${token}` }).end(token),
    ],
  ])("%s", async (_, handler) => {
    await using server = await startServer(handler);
    using test = clientOf(server, { access: { token: { text: token } } });
    const error = await test.client.get(nodes, "n").then(
      () => undefined,
      (error: Error) => error,
    );
    expect(error?.message).toMatch(/GET \/api\/v1\/nodes\/n: \d+/);
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
      expect(`${cause.message} ${cause.stack} ${JSON.stringify(cause)}`).not.toContain(token);
  });

  it("a plugin's token that is reviewed", async () => {
    await using server = await startServer(({ body, response }) =>
      sendJson(response, { status: { error: `no such token: ${JSON.parse(body).spec.token}` } }, 201),
    );
    using test = clientOf(server);
    expect(await test.client.reviewToken("plugins-own-token")).toMatchObject({
      reason: "no such token: [redacted]",
    });
    server.handler = ({ body, response }) => sendStatus(response, 403, body);
    await expect(test.client.reviewToken("plugins-own-token")).rejects.toThrow(/"token":"\[redacted\]"/);
  });
});

describe("a kubeconfig", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "redact-"));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it.each([
    [
      "a password in the server's URL",
      `{current-context: c, contexts: [{name: c, context: {cluster: k}}], clusters: [{name: k, cluster: {server: "https://root:secret-1@h"}}]}`,
      /clusters\[0\]\.cluster\.server: expected a URL without user name and password/,
    ],
    ["a line that is no YAML", `users:\n  - token: "secret-1\n`, /config:\d+: not YAML/],
  ])("is refused for %s without quoting it", async (_, text, message) => {
    const path = join(directory, "config");
    await writeFile(path, text);
    const error = await readKubeconfig(path).catch((error: Error) => error);
    expect(error).toMatchObject({ code: "invalid", message: expect.stringMatching(message) });
    expect(`${(error as Error).stack} ${(error as Error).cause}`).not.toContain("secret-1");
  });
});
