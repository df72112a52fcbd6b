import { isLoopback } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { formatAddress, parseListenAddress } from "./address.ts";
import { isHostAllowed } from "./host-guard.ts";

describe("listen addresses", () => {
  it.each([
    ["127.0.0.1:10290", "127.0.0.1", 10290],
    ["[::1]:0", "::1", 0],
    ["localhost:80", "localhost", 80],
  ])("reads %s", (text, host, port) => {
    expect(parseListenAddress(text)).toEqual({ host, port });
    expect(formatAddress(host, port)).toBe(text);
  });

  it.each(["", ":80", "127.0.0.1", "::1:80", "[nonsense]:1", "a:70000", "a:b", "http://a:1"])(
    "refuses %j",
    (text) => {
      expect(() => parseListenAddress(text)).toThrow(`${JSON.stringify(text)} is not an address`);
    },
  );

  it.each([
    ["127.0.0.1", true],
    ["127.9.9.9", true],
    ["::1", true],
    ["LOCALHOST.", true],
    ["a.localhost", true],
    ["127.0.0.1.example.com", false],
    ["0.0.0.0", false],
    ["localhost.example.com", false],
  ])("%s is loopback: %s", (host, expected) => expect(isLoopback(host)).toBe(expected));
});

describe("Host headers at a server on loopback", () => {
  it.each([
    ["localhost:10290", true],
    ["127.0.0.1", true],
    ["[::1]:10290", true],
    ["node.internal:10290", true],
    [undefined, true],
    ["evil.example.com", false],
    ["evil.example.com:10290", false],
    ["127.0.0.1.evil.example.com", false],
    ["localhost@evil.example.com", false],
    ["192.0.2.1", false],
    ["", false],
  ])("%s is answered: %s", (header, allowed) => {
    expect(isHostAllowed(header, "node.internal", "127.0.0.1")).toBe(allowed);
  });

  it("do not matter when it is bound to every address", () => {
    expect(isHostAllowed("node-7.example.com", "0.0.0.0", "0.0.0.0")).toBe(true);
  });
});
