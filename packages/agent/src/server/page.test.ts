import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry, systemClock } from "@nodekeeper/core/lib";
import { expect, test } from "vitest";
import { pageDirectory, type ReadPageFile } from "./page.ts";
import { Router } from "./router.ts";

const directory = mkdtempSync(join(tmpdir(), "nodekeeper-page-"));
writeFileSync(join(directory, "index.html"), "<!doctype html>");
writeFileSync(join(directory, "main.js"), "export {};");
writeFileSync(join(directory, "secret.key"), "");

async function get(path: string, accept: string, page: ReadPageFile = pageDirectory(directory)) {
  const common = { registry: new Registry(), clock: systemClock, withholdReasons: false };
  const router = new Router({ ...common, served: { checks: [], routes: [], page } });
  return router.answer(path, new URLSearchParams(), AbortSignal.timeout(60_000), { accept });
}

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

test("browsers get the page at /, others the list of addresses", async () => {
  const page = (await get("/", browser)).reply;
  expect(page).toMatchObject({ status: 200, contentType: "text/html; charset=utf-8" });
  expect(Buffer.from(page.body).toString()).toBe("<!doctype html>");
  expect((await get("/", "*/*")).reply).toMatchObject({ contentType: "text/plain; charset=utf-8" });
});

test("nothing but the agent's own files is loaded or run in the page", async () => {
  for (const path of ["/", "/page/main.js"]) {
    const policy = (await get(path, browser)).reply.headers!["Content-Security-Policy"]!;
    expect(policy).toMatch(/^default-src 'none'; /);
    expect(policy).not.toMatch(/unsafe|\*|https?:|data:/);
    expect(policy).toContain("frame-ancestors 'none'");
  }
});

test.each([
  ["a file of the page", "main.js", 200],
  ["a file that is absent", "other.js", 404],
  ["a kind of file that no page has", "secret.key", 404],
  ["a directory above", "../main.js", 404],
  ["a directory above, encoded", "%2e%2e%2fmain.js", 404],
  ["no name", "", 404],
])("%s: /page/%s is answered with %d, and counted as one handler", async (_, name, status) => {
  expect(await get(`/page/${name}`, browser)).toMatchObject({ handler: "/page/", reply: { status } });
});

test("an agent whose page is not bundled lists its addresses to browsers too", async () => {
  const { reply } = await get("/", browser, pageDirectory(join(directory, "absent")));
  expect(reply).toMatchObject({ status: 200, contentType: "text/plain; charset=utf-8" });
});
