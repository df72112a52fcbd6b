import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { SessionCookies } from "./session-cookie.ts";

const KEY = "-----BEGIN PRIVATE KEY----- one";
const cookies = new SessionCookies(KEY);
const token = `eyJhbGciOiJSUzI1NiJ9.${randomBytes(700).toString("base64url")}.${randomBytes(256).toString("base64url")}`;

/** What a browser sends back. */
const sent = (setCookie: string) => setCookie.split(";")[0]!;

describe("the cookie of a session", () => {
  it("is for this host, over TLS, for no script, and for no request that another site makes", () => {
    const [, ...attributes] = cookies.keep(token).split("; ");
    expect(attributes).toEqual(["Path=/", "Secure", "HttpOnly", "SameSite=Lax"]);
    expect(cookies.keep(token)).toMatch(/^__Host-/);
    const [emptied, age, ...same] = cookies.clear().split("; ");
    expect([emptied, age, same]).toEqual(["__Host-nodekeeper=", "Max-Age=0", attributes]);
  });

  it("gives the token back, among other cookies, and after a restart of the agent", () => {
    const header = `a=b; ${sent(cookies.keep(token))}; __Host-nodekeeper-other=c`;
    expect(cookies.tokenOf(header)).toBe(token);
    expect(new SessionCookies(KEY).tokenOf(header)).toBe(token);
  });

  it("does not show the token to other servers of the host, to which browsers send it too", () => {
    const [, value = ""] = sent(cookies.keep(token)).split("=");
    const bytes = Buffer.from(value, "base64url").toString("latin1");
    for (const text of [value, bytes]) expect(text).not.toContain(token.slice(0, 12));
    expect(cookies.keep(token)).not.toBe(cookies.keep(token));
  });

  it("is none where it was changed, is of another key, or of no token at all", () => {
    const header = sent(cookies.keep(token));
    const last = header.at(-1) === "A" ? "B" : "A";
    const at = header.indexOf("=") + 30;
    const changed = `${header.slice(0, at)}${header[at] === "x" ? "y" : "x"}${header.slice(at + 1)}`;
    for (const other of [
      changed,
      header.slice(0, 30),
      `${header}${last}AAA`,
      "__Host-nodekeeper=",
      "x=y",
      "",
    ])
      expect([other, cookies.tokenOf(other)]).toEqual([other, undefined]);
    expect(new SessionCookies("another").tokenOf(header)).toBeUndefined();
    expect(cookies.tokenOf(undefined)).toBeUndefined();
  });

  it("holds tokens of 3,500 characters, and refuses those that a browser would drop", () => {
    const long = randomBytes(2_600).toString("base64url");
    expect(sent(cookies.keep(long)).length).toBeLessThanOrEqual(4_096);
    expect(cookies.tokenOf(sent(cookies.keep(long)))).toBe(long);
    for (const bytes of [3_100, 12_000, 100_000])
      expect(() => cookies.keep(randomBytes(bytes).toString("base64url"))).toThrow(/too long for a cookie/);
  });
});
