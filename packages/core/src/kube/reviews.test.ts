import { expect, it } from "vitest";
import { clientOf, sendJson, startServer } from "./testing/test-server.ts";

const user = { username: "system:serviceaccount:a:b", uid: "u", groups: ["g"], extra: { "a/b": ["c"] } };

it("reviews a token, and what its account may do", async () => {
  await using server = await startServer(({ url, body, response }) => {
    const { spec } = JSON.parse(body);
    if (url.pathname.endsWith("/tokenreviews")) {
      const isKnown = spec.token === "right";
      const status = isKnown ? { authenticated: true, user } : { error: "token is expired" };
      return sendJson(response, { status }, 201);
    }
    const isAllowed = spec.user === user.username && spec.resourceAttributes.verb === "create";
    sendJson(response, { status: { allowed: isAllowed, reason: "by a rule" } }, 201);
  });
  using test = clientOf(server);
  expect(await test.client.reviewToken("right")).toEqual({ user, reason: "" });
  expect(await test.client.reviewToken("wrong")).toEqual({ user: undefined, reason: "token is expired" });
  const question = { verb: "create", group: "", resource: "pods", subresource: "eviction" };
  expect(await test.client.reviewAccessOf(user, question)).toEqual({ allowed: true, reason: "by a rule" });
  expect((await test.client.reviewAccessOf(user, { ...question, verb: "get" })).allowed).toBe(false);
  expect(server.exchanges.map(({ url }) => url.pathname)).toEqual([
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
  ]);
});

it("fails where the response has no status", async () => {
  await using server = await startServer(({ response }) => sendJson(response, {}, 201));
  using test = clientOf(server);
  await expect(test.client.reviewToken("a")).rejects.toThrow(/tokenreviews: the response has no status/);
});
