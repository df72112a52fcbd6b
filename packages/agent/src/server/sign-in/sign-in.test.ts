import { type ErrorCode, NodekeeperError } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import type { RemoteRequest } from "../delegated-access.ts";
import { SignIn } from "./sign-in.ts";

const { signal } = new AbortController();
const POST = { method: "POST", path: "/" };

function setUp(check: (request: RemoteRequest) => void = () => {}) {
  const checked: RemoteRequest[] = [];
  const signIn = new SignIn(async (request) => {
    checked.push(request);
    check(request);
  });
  signIn.useKey("a private key");
  const enter = async (token: string) =>
    (await signIn.answer(POST, new URLSearchParams({ token }), signal))!.reply;
  return { checked, signIn, enter };
}

it("asks whether the token's account may get the page, by the check that decides about all requests", async () => {
  const { checked, signIn, enter } = setUp();
  const { status, headers } = await enter("  abc.def \n");
  expect([status, headers!.Location]).toEqual([303, "./"]);
  expect(checked).toEqual([{ token: "abc.def", verb: "get", path: "/" }]);
  expect(signIn.tokenOf({ cookie: headers!["Set-Cookie"]!.split(";")[0]! })).toBe("abc.def");
});

it.each<[ErrorCode, number, RegExp]>([
  ["unauthenticated", 401, /Create a new one/],
  ["forbidden", 403, /the check's message\. Bind a role/],
  ["throttled", 429, /Try again in a few seconds/],
  ["unavailable", 503, /cannot reach the API server/],
  ["deadline", 504, /cannot reach the API server/],
])("gives the form again with what to do where the check throws %s", async (code, status, text) => {
  const { enter } = setUp(() => {
    throw new NodekeeperError(code, "the check's message", { id: "NK1709", retryAfterMs: 1_500 });
  });
  const reply = await enter("abc");
  expect(reply).toMatchObject({ status, headers: { "Retry-After": "2" } });
  expect(reply.headers).not.toHaveProperty("Set-Cookie");
  expect(reply.body).toMatch(text);
  expect(reply.body).toContain('<form method="post">');
});

it("does not send a user to a role of the account where the agent itself lacks the right to review tokens", async () => {
  const { enter } = setUp(() => {
    throw new NodekeeperError("forbidden", "nodekeeper can't create tokenreviews", { id: "NK1202" });
  });
  const { status, body } = await enter("abc");
  expect(status).toBe(403);
  expect(body).toContain("nodekeeper can't create tokenreviews.</p>");
  expect(body).not.toContain("Bind a role");
});

it("checks no token that it could not keep", async () => {
  const { checked, enter } = setUp();
  for (const token of ["", " ", "two words", "umlaut-\u00e4", "x".repeat(20_000)]) await enter(token);
  expect(checked).toEqual([]);
});

it("ends all sessions when the server's key is replaced", async () => {
  const { signIn, enter } = setUp();
  const { headers } = await enter("abc");
  const cookie = headers!["Set-Cookie"]!.split(";")[0]!;
  signIn.useKey("the next private key");
  expect(signIn.tokenOf({ cookie })).toBeUndefined();
});

it("shows names from outside as text, without direction marks and control characters", async () => {
  const { enter } = setUp(() => {
    throw new NodekeeperError("forbidden", '<img src="x">\u202egnp.exe\u0007 may not get');
  });
  const { body } = await enter("abc");
  expect(body).toContain("&lt;img src=&quot;x&quot;&gt; gnp.exe  may not get");
});
