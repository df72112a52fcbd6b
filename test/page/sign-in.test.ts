import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SteppedClock } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { issueCertificate, remotePort, reviewTokens } from "../support/remote.ts";
import { connectTo } from "./support/chromium.ts";
import { accessibilityProblems, keyboardProblems, overflow } from "./support/in-page.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage, type PageOptions } from "./support/open-page.ts";
import { keepStreamed, streamed } from "./support/streamed.ts";

// What a browser logs of an answer that refuses, and of a stream that the agent ends.
const REFUSED = /status of 40[13]|net::ERR_INCOMPLETE_CHUNKED_ENCODING/;
const VIEW = "#/plugins/memory-watch";

const accounts: Record<string, string> = { good: "operator", powerless: "system:serviceaccount:default:web" };
const clock = new SteppedClock();
const directory = mkdtempSync(join(tmpdir(), "sign-in-"));
let node: PageNode;
let address: string;
let browser: Browser;

beforeAll(async () => {
  const { flags } = issueCertificate(directory);
  node = await startNode({ clock, flags: { serverRemoteAddress: "0.0.0.0:0", ...flags } });
  reviewTokens(
    node.cluster,
    accounts,
    (user, path) => user === "operator" && path.startsWith("/nodekeeper/"),
  );
  address = `127.0.0.1:${remotePort(node.agent)}`;
  browser = await connectTo(inject("browser"));
});
afterAll(async () => {
  await browser?.close();
  await node?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

async function openForm(options: PageOptions = {}): Promise<OpenPage> {
  const open = await OpenPage.open(browser, address, { tls: true, expected: REFUSED, ...options });
  await keepStreamed(open.page);
  await open.goTo(VIEW);
  await open.see("Sign in to Nodekeeper");
  return open;
}

async function enter({ page }: OpenPage, token: string): Promise<void> {
  await page.getByLabel("Token of the cluster").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

async function openSignedIn(options?: PageOptions, token = "good"): Promise<OpenPage> {
  const open = await openForm(options);
  await enter(open, token);
  await open.see("worker-1", "memory-watch");
  return open;
}

async function untilReceived({ page }: OpenPage, podUid: string): Promise<void> {
  await until("the pod's start is received", async () =>
    (await streamed(page)).some(({ name, data }) => name === "events" && data.event.pod.uid === podUid),
  );
}

const hashOf = ({ page }: OpenPage) => page.evaluate(() => location.hash);
const cookiesOf = ({ page }: OpenPage) => page.context().cookies();

it.each(["light", "dark"] as const)("asks for a token, for every user: %s", async (colorScheme) => {
  await using open = await openForm({ colorScheme, width: 360, height: 740 });
  const { page } = open;
  for (const problems of [[], ["The token has expired, or is not one of this cluster. Create a new one."]]) {
    expect(await page.getByRole("alert").allInnerTexts()).toEqual(problems);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await keyboardProblems(page)).toEqual([]);
    for (const width of [360, 1920]) {
      await page.setViewportSize({ width, height: 740 });
      expect(await overflow(page)).toEqual({ pixels: 0, of: [] });
    }
    // The form's style is applied, and the dark one where it is dark.
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(ground).toBe(colorScheme === "dark" ? "rgb(13, 17, 23)" : "rgb(255, 255, 255)");
    await enter(open, "made-up");
    await open.see("The token has expired, or is not one of this cluster");
  }
  open.expectNoProblems();
});

it("shows what is wrong with a token, and the view that was asked for when it is right", async () => {
  await using open = await openForm();
  const { page } = open;
  // At once, without a mouse.
  await page.keyboard.type("made-up");
  await page.keyboard.press("Enter");
  await open.see("The token has expired, or is not one of this cluster");
  await enter(open, "powerless");
  await open.see("system:serviceaccount:default:web may not get /nodekeeper/");
  expect(await page.content()).not.toMatch(/made-up|powerless/);
  expect(await cookiesOf(open)).toEqual([]);
  expect(await hashOf(open)).toBe(VIEW);

  await enter(open, "good");
  await open.see("worker-1", "memory-watch", "Sign out");
  expect(await hashOf(open)).toBe(VIEW);
  expect(await cookiesOf(open)).toEqual([
    expect.objectContaining({
      name: "__Host-nodekeeper",
      domain: "127.0.0.1",
      path: "/",
      expires: -1,
      httpOnly: true,
      secure: true,
      sameSite: "Lax",
    }),
  ]);
  expect(await page.evaluate(() => document.cookie)).toBe("");
  open.expectNoProblems();
});

it("shows every view, one after the other as fast as they are opened, and what happens meanwhile", async () => {
  await using open = await openSignedIn();
  for (const name of ["Timeline", "Pods", "Now", "Resources", "What if", "Plugins"]) {
    const views = open.page.getByRole("navigation", { name: "Views" });
    await views.getByRole("link", { name, exact: true }).click();
    await open.page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  }
  const { uid } = node.addPod("started-meanwhile");
  await untilReceived(open, uid);
  // Nothing was refused: neither 401 nor 429.
  await open.page.reload();
  await open.see("worker-1", "memory-watch");
  open.expectNoProblems();
});

it("asks to sign in again when the token expires while the page is open, and continues at the same view", async () => {
  accounts.brief = "operator";
  await using open = await openSignedIn({}, "brief");
  // From then on, the agent looks at the token again after a minute.
  await untilReceived(open, node.addPod("started-while-signed-in").uid);
  delete accounts.brief;
  clock.advance(61_000);
  await open.see("your sign-in has ended");
  // What was known is still there to be read.
  await open.see("memory-watch");
  expect(await accessibilityProblems(open.page)).toEqual([]);
  await open.page.getByRole("button", { name: "Sign in again" }).click();
  await open.see("The token has expired");
  expect(await hashOf(open)).toBe(VIEW);
  await enter(open, "good");
  await open.see("worker-1", "memory-watch");
  await open.seeNoLonger("your sign-in has ended");
  expect(await hashOf(open)).toBe(VIEW);
  open.expectNoProblems();
});

it("signs out", async () => {
  await using open = await openSignedIn();
  await open.page.getByRole("link", { name: "Sign out" }).click();
  await open.see("The token itself remains valid until it expires");
  expect(await accessibilityProblems(open.page)).toEqual([]);
  await open.page.getByRole("button", { name: "Sign out" }).click();
  await open.see("Sign in to Nodekeeper");
  expect(await cookiesOf(open)).toEqual([]);
  await open.goTo(VIEW);
  await open.see("Sign in to Nodekeeper");
  open.expectNoProblems();
});

it("lets another site sign no one in or out, and read nothing; its links to a view open it", async () => {
  const other = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<!doctype html><a href="https://${address}/${VIEW}">the view</a>
      <form method="post" action="https://${address}/"><input name="token" value="good"><button>in</button></form>
      <form method="post" action="https://${address}/sign-out"><button>out</button></form>`);
  });
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  // Another host name: cookies know no ports.
  const site = `http://localhost:${(other.address() as AddressInfo).port}/`;
  try {
    await using stranger = await OpenPage.open(browser, address, { tls: true, expected: /./ });
    await stranger.page.goto(site);
    await stranger.page.getByRole("button", { name: "in" }).click();
    await stranger.see("requests from pages of other origins are refused");
    expect(await cookiesOf(stranger)).toEqual([]);

    await using user = await openSignedIn({ expected: /./ });
    const before = await cookiesOf(user);
    await user.page.goto(site);
    await user.page.getByRole("button", { name: "out" }).click();
    await user.see("requests from pages of other origins are refused");
    expect(await cookiesOf(user)).toEqual(before);
    await user.page.goto(site);
    const answer = await user.page.evaluate(
      (agent) =>
        fetch(`${agent}/api/v1/node`, { credentials: "include" }).then(
          () => "read",
          () => "refused",
        ),
      `https://${address}`,
    );
    expect(answer).toBe("refused");
    await user.page.getByText("the view").click();
    await user.see("worker-1", "memory-watch");
  } finally {
    other.closeAllConnections();
    other.close();
  }
});

it("serves the page on the loopback as before: without a token, and nothing to sign out of", async () => {
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo(VIEW);
  await open.see("worker-1", "memory-watch");
  await eventually(async () => expect(await open.page.getByText("Sign out").count()).toBe(0));
  open.expectNoProblems();
});
