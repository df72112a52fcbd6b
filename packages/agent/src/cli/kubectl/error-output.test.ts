import { describe, expect, it } from "vitest";
import { ErrorOutput } from "./error-output.ts";

function output() {
  const shown: string[] = [];
  const errors = new ErrorOutput((text) => shown.push(text));
  return { shown, errors };
}

describe("kubectl's standard error", () => {
  it("is the same in whatever pieces it arrives", () => {
    const log = `E1122 10:49:23.239295   18200 memcache.go:265] "Unhandled Error" err=<\n\tone\n\t\n\ttwo\n >\n`;
    const text = `${log}Warning: old\n${log}Error from server (NotFound): x\nfurther\n`;
    for (const size of [1, 2, 3, 7, 50, 1_000]) {
      const { shown, errors } = output();
      for (let at = 0; at < text.length; at += size) errors.add(text.slice(at, at + size));
      expect(errors.take()).toEqual({ errors: ["Error from server (NotFound): x"], last: "further" });
      expect(shown.join("")).toBe("Warning: old\nfurther\n");
    }
  });

  it("has an error behind a prompt that was answered", () => {
    const { shown, errors } = output();
    errors.add("Enter password: ");
    errors.add("error: wrong password\n");
    expect(shown).toEqual(["Enter password: "]);
    expect(errors.take().errors).toEqual(["error: wrong password"]);
  });

  it.each(["error: ", "E1122 "])("is bounded where a line of %s does not end", (start) => {
    const { shown, errors } = output();
    errors.add(start);
    for (let i = 0; i < 100; i++) errors.add("x".repeat(1_000));
    expect(shown.join("").length).toBeGreaterThan(90_000);
    const { errors: lines, last } = errors.take();
    expect(lines.join("").length).toBeLessThan(6_000);
    expect(last.length).toBeLessThan(6_000);
  });

  it("is not lost: what was kept can be shown, once", () => {
    const { shown, errors } = output();
    errors.add("E1122 retry\nerror: odd\nUnable");
    expect(shown).toEqual([]);
    errors.show();
    errors.show();
    expect(shown.join("")).toBe("UnableE1122 retry\nerror: odd\n");
  });
});
