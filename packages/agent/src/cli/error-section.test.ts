import { expect, it } from "vitest";
import { runCli } from "./index.ts";
import { runCommand } from "./testing/run-command.ts";

const explain = (...words: string[]) =>
  runCommand((output) => runCli(["node", "nodekeeper", "explain", ...words], output));

it.each([["NK1603"], ["nk1603"]])("explain %s prints what the error means and what to do", async (id) => {
  const { status, out } = await explain(id);
  expect(status).toBe(0);
  expect(out).toMatch(/^NK1603: An eviction plugin's call failed\n\nCause: .+\n\nRemedy: .+\n$/);
});

it("prints the same as JSON", async () => {
  const { out } = await explain("NK1001", "-o", "json");
  const text = expect.any(String);
  expect(JSON.parse(out)).toEqual({ id: "NK1001", title: text, cause: text, remedy: text });
});

it.each([["NK9999"], ["pods"]])("refuses %s", async (id) => {
  const { status, stderr } = await explain(id);
  expect(status).toBe(2);
  expect(stderr).toContain(`"${id}" is neither "pod" nor "node", nor an id`);
});

it("prints its help without an argument", async () => {
  const { status, stderr } = await explain();
  expect(status).toBe(2);
  expect(stderr).toContain("Usage: nodekeeper explain");
});
