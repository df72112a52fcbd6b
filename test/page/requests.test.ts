import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

let node: PageNode;
let browser: Browser;

beforeAll(async () => {
  node = await startNode();
  browser = await connectTo(inject("browser"));
});
afterAll(async () => {
  await browser?.close();
  await node?.[Symbol.asyncDispose]();
});

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Asks with headers that a browser would not let a test set. */
async function get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const [host, port] = node.agent.address.split(":");
  const call = request({ host, port, path, headers }).end();
  const [response] = await once(call, "response");
  let body = "";
  for await (const piece of response.setEncoding("utf8")) body += piece;
  return { status: response.statusCode, headers: response.headers, body };
}

const asBrowser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

/** The page and its files: those that the page names, and those that they import. */
async function pageFiles(): Promise<Map<string, Answer>> {
  const found = new Map([["/", await get("/", asBrowser)]]);
  for (const [path, { body }] of found) {
    const names = path === "/" ? /(?:href|src)="(page\/[^"]+)"/g : /["'](?:\.\/|page\/)([\w-]+\.\w+)["']/g;
    for (const [, name = ""] of body.matchAll(names)) {
      const next = `/page/${name.replace(/^page\//, "")}`;
      if (!found.has(next)) found.set(next, await get(next));
    }
  }
  return found;
}

describe("the page's files", () => {
  it("have a strict content security policy, and are not stored", async () => {
    const files = await pageFiles();
    expect([...files.keys()]).toEqual(expect.arrayContaining(["/page/main.js", "/page/main.css"]));
    for (const [path, { status, headers }] of files) {
      expect([path, status]).toEqual([path, 200]);
      expect(headers["x-content-type-options"]).toBe("nosniff");
      expect(headers["cross-origin-opener-policy"]).toBe("same-origin");
      expect(headers["cache-control"]).toBe("no-store");
      const policy = String(headers["content-security-policy"]).split(/; */);
      expect(policy).toEqual(
        expect.arrayContaining([
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "base-uri 'none'",
          "form-action 'none'",
          "frame-ancestors 'none'",
        ]),
      );
      // Nothing of other hosts, nothing inline, nothing from texts.
      const sources = policy.flatMap((each) => each.split(" ").slice(1));
      expect(new Set(sources)).toEqual(new Set(["'none'", "'self'"]));
    }
  });

  it("are for browsers: others get the list of addresses at the same place", async () => {
    expect((await get("/", asBrowser)).headers["content-type"]).toMatch(/^text\/html/);
    const { headers, body } = await get("/", { accept: "*/*" });
    expect(headers["content-type"]).toMatch(/^text\/plain/);
    expect(body).toContain("/metrics");
  });

  it("are all there is below /page/", async () => {
    for (const path of [
      "/page/",
      "/page/nothing.js",
      "/page/..%2fpackage.json",
      "/page/../../package.json",
      "/page/%00",
    ])
      expect([path, (await get(path, asBrowser)).status]).toEqual([path, 404]);
  });
});

describe("requests that are refused", () => {
  it("a Host header that is no name of the server, as after DNS rebinding", async () => {
    for (const path of ["/", "/page/main.js", "/api/v1/node", "/api/v1/stream"])
      for (const host of ["evil.example", "evil.example:10290", "127.0.0.1.evil.example"])
        expect([path, host, (await get(path, { ...asBrowser, host })).status]).toEqual([path, host, 403]);
  });

  it("other sites' pages read nothing, run nothing and show nothing of it; their links may be followed", async () => {
    const { address } = node.agent;
    const other = createServer((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<!doctype html><a href="http://${address}/#/now">the agent</a>`);
    });
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    try {
      const otherAddress = `127.0.0.1:${(other.address() as AddressInfo).port}`;
      await using open = await OpenPage.open(browser, otherAddress, { expected: /./ });
      await open.goTo("");
      const results = await open.page.evaluate(async (agent) => {
        // The handlers come before the address: an image is loaded from then on.
        const loaded = (tag: string, attributes: Record<string, string>) =>
          new Promise<string>((resolve) => {
            const element = document.createElement(tag);
            element.onload = () => resolve("loaded");
            element.onerror = () => resolve("refused");
            document.body.append(Object.assign(element, attributes));
          });
        return {
          answer: await fetch(`${agent}/api/v1/node`).then(
            () => "read",
            () => "refused",
          ),
          // Sent without asking first, but nothing of the answer can be read.
          opaque: await fetch(`${agent}/api/v1/node`, { mode: "no-cors" }).then(
            ({ type }) => type,
            () => "refused",
          ),
          script: await loaded("script", { src: `${agent}/page/main.js` }),
          style: await loaded("link", { rel: "stylesheet", href: `${agent}/page/main.css` }),
          image: await loaded("img", { src: `${agent}/page/icon.svg` }),
          stream: await new Promise((resolve) => {
            const stream = new EventSource(`${agent}/api/v1/stream`);
            stream.onopen = () => resolve("open");
            stream.onerror = () => resolve("refused");
          }),
        };
      }, `http://${address}`);
      expect(results).toEqual({
        answer: "refused",
        opaque: "refused",
        script: "refused",
        style: "refused",
        image: "refused",
        stream: "refused",
      });

      await open.page.evaluate(async (agent) => {
        const frame = Object.assign(document.createElement("iframe"), { src: `${agent}/` });
        const done = new Promise((resolve) => frame.addEventListener("load", resolve));
        document.body.append(frame);
        await done;
      }, `http://${address}`);
      // What the browser puts in place of a refused page.
      const [, frame] = open.page.frames();
      expect(frame?.url()).toBe("chrome-error://chromewebdata/");

      await open.page.getByText("the agent").click();
      await open.see("worker-1");
    } finally {
      other.closeAllConnections();
      other.close();
    }
  });
});
