import { expect, it } from "vitest";
import { reviewedTokens } from "./token-check.ts";

const { signal } = new AbortController();
const account = { username: "system:serviceaccount:a:b", uid: "", groups: [], extra: {} };
const client = (user: typeof account | undefined, allowed: boolean) => ({
  reviewToken: async () => ({ user, reason: user ? "" : "expired" }),
  reviewAccessOf: async () => ({ allowed, reason: "" }),
});

it.each<[string, typeof account | undefined, boolean, string, RegExp | undefined]>([
  ["a valid token of an account that may evict", account, true, "t", undefined],
  ["no token", account, true, "", /plugin has no token/],
  ["an enormous token", account, true, "t".repeat(100_000), /too long/],
  ["an unknown token", undefined, true, "t", /not valid: expired/],
  [
    "an account that may not",
    account,
    false,
    "t",
    /system:serviceaccount:a:b.* may not create pods\/eviction/,
  ],
])("%s", async (_, user, allowed, token, message) => {
  const checked = reviewedTokens(client(user, allowed))("plugin", token, signal);
  if (!message) return await expect(checked).resolves.toBeUndefined();
  const id = user && !allowed ? "NK1316" : "NK1315";
  await expect(checked).rejects.toMatchObject({ id, message: expect.stringMatching(message) });
});
