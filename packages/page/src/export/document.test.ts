import { expect, it } from "vitest";
import { csvFile, jsonFile } from "./document.ts";

const about = {
  node: "worker-1.example.com",
  view: "What if",
  address: "http://node/#/what-if?burst=2",
  at: Date.parse("2026-11-28T03:04:05.678Z"),
};
const table = (name: string, rows: Record<string, string | number>[]) => ({ name, read: () => rows });

it("JSON has all tables, and of which view and time they are", () => {
  const { name, content } = jsonFile(about, [table("Pods", [{ Pod: "a/b" }]), table("Claims", [])]);
  expect(name).toBe("worker-1.example.com-what-if-20261128T030405Z.json");
  expect(JSON.parse(content)).toEqual({
    ...about,
    at: "2026-11-28T03:04:05.678Z",
    tables: [
      { name: "Pods", rows: [{ Pod: "a/b" }] },
      { name: "Claims", rows: [] },
    ],
  });
});

it.each([
  ["Last evictions", "worker-1.example.com-what-if-last-evictions-20261128T030405Z.csv"],
  ["../../etc/passwd", "worker-1.example.com-what-if-etc-passwd-20261128T030405Z.csv"],
  ["x".repeat(300), `worker-1.example.com-what-if-${"x".repeat(60)}-20261128T030405Z.csv`],
])("CSV of %s is a file of its own", (name, file) => {
  expect(csvFile(about, table(name, [{ a: 1 }]))).toMatchObject({ name: file, content: '"a"\r\n1\r\n' });
});
