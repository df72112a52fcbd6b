import { expect, it } from "vitest";
import { canonicalInterfaceAddress } from "./interface-address.ts";

it.each([
  ["192.0.2.5/24", "192.0.2.5/24"],
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["2001:db8::5/64", "2001:db8::5/64"],
  ["2001:DB8:0:0:0:0:0:5/64", "2001:db8::5/64"],
  ["2001:db8:0:1:0:0:0:5/128", "2001:db8:0:1::5/128"],
  ["::/0", "::/0"],
])("%s is %s", (text, canonical) => {
  expect(canonicalInterfaceAddress(text)).toBe(canonical);
});

it.each([
  "192.0.2.5",
  "192.0.2.5/33",
  "192.0.2.05/24",
  "192.0.2.5/024",
  "2001:db8::5/129",
  "fe80::1%eth0/64",
  "::ffff:192.0.2.5/120",
  "host/24",
  "",
])("%j is no address", (text) => {
  expect(canonicalInterfaceAddress(text)).toBeUndefined();
});
