import { expect, it } from "vitest";
import { LatestValue } from "./latest-value.ts";

const never = new AbortController().signal;

it("gives readers the newest value, and each value once", async () => {
  const latest = new LatestValue<string>();
  const first = latest.take(never);
  latest.set("a");
  expect(await first).toBe("a");
  latest.set("b");
  latest.set("c");
  expect(await latest.take(never)).toBe("c");
});

it("serves several readers, each from where it is", async () => {
  const latest = new LatestValue<string>();
  latest.set("a");
  const { number } = await latest.after(0, never);
  const waiting = [latest.after(number, never), latest.after(number, never)];
  latest.set("b");
  expect((await Promise.all(waiting)).map(({ value }) => value)).toEqual(["b", "b"]);
});

it("gives readers a failure once, after the value before it, until a newer value replaces it", async () => {
  const latest = new LatestValue<string>();
  const waiting = latest.after(0, never);
  latest.fail(new Error("no sensor"));
  await expect(waiting).rejects.toThrow("no sensor");
  latest.set("a");
  latest.fail(new Error("unplugged"));
  const { number, value } = await latest.after(0, never);
  expect(value).toBe("a");
  await expect(latest.after(number, never)).rejects.toThrow("unplugged");
  const next = latest.after(latest.failure!.number, never);
  latest.set("b");
  expect((await next).value).toBe("b");
  expect(latest.failure).toBeUndefined();
});

it("stops waiting when the signal aborts", async () => {
  const stop = new AbortController();
  const waiting = new LatestValue<string>().take(stop.signal);
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
});
