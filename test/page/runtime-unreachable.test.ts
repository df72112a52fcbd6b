import type { Browser } from "playwright-core";
import { afterAll, beforeAll, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

let browser: Browser;
let node: PageNode;

beforeAll(async () => {
  browser = await connectTo(inject("browser"));
  node = await startNode({ flags: { runtimeEndpoint: "unix:///nonexistent/containerd.sock" } });
});
afterAll(async () => {
  await browser?.close();
  await node?.[Symbol.asyncDispose]();
});

it("a node whose container runtime was never reached is not shown as one without pods", async () => {
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/timeline");
  await open.see(/The agent does not know this node's pods yet: no relist has succeeded since the start/);
});

it("containers of a runtime that is gone are not shown as if they were seen", async () => {
  await using reached = await startNode();
  reached.addPod("web");
  await using open = await OpenPage.open(browser, reached.agent.address);
  await open.goTo("#/timeline");
  await open.see("web");
  await open.goTo("#/pod");
  await open.see("default/web", "1 of 1 run");
  await reached.cri.stop();
  for (const hash of ["#/pod", "#/timeline"]) {
    await open.goTo(hash);
    await open.see(/Containers may have changed unseen/);
  }
  open.expectNoProblems();
});
