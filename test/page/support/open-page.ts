import type { Browser, BrowserContext, Page } from "playwright-core";
import { expect } from "vitest";

export interface PageOptions {
  /** CSS pixels. Default 1280 by 800. */
  width?: number;
  height?: number;
  /** Default "light". */
  colorScheme?: "light" | "dark";
  /** Messages of the console that the test causes itself, such as those of a lost connection. */
  expected?: RegExp;
  /** Pixels of a picture for a CSS pixel. Default 1. */
  scale?: number;
  /** Over TLS, with a certificate of whatever authority: a test has its own. */
  tls?: boolean;
}

// A wait that fails has waited as long as `until` of @nodekeeper/testing does.
const TIMEOUT_MS = 180_000;

/** The agent's page in a browser profile of its own. Keeps what a page that works never does. */
export class OpenPage implements AsyncDisposable {
  readonly page: Page;
  /** Errors and warnings of the console, violations of the content security policy among them; dialogs; foreign requests. */
  readonly problems: string[] = [];
  readonly #context: BrowserContext;
  readonly #origin: string;

  private constructor(context: BrowserContext, page: Page, origin: string, expected: RegExp | undefined) {
    this.#context = context;
    this.page = page;
    this.#origin = origin;
    page.on("console", (message) => {
      const text = message.text();
      if (!["error", "warning", "assert"].includes(message.type()) || expected?.test(text)) return;
      this.problems.push(`${message.type()}: ${text} (${message.location().url})`);
    });
    page.on("pageerror", (error) => this.problems.push(`uncaught: ${error.stack ?? error}`));
    page.on("dialog", (dialog) => {
      this.problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (origin !== this.#origin && protocol !== "data:") this.problems.push(`request to ${request.url()}`);
    });
  }

  /** @param address "host:port" of the agent's status server */
  static async open(browser: Browser, address: string, options: PageOptions = {}): Promise<OpenPage> {
    const { width = 1280, height = 800, colorScheme = "light", expected, tls = false, scale = 1 } = options;
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme,
      deviceScaleFactor: scale,
      reducedMotion: "reduce",
      locale: "en-GB",
      timezoneId: "UTC",
      ignoreHTTPSErrors: tls,
    });
    context.setDefaultTimeout(TIMEOUT_MS);
    return new OpenPage(context, await context.newPage(), `${tls ? "https" : "http"}://${address}`, expected);
  }

  /** Opens a view as a link that was sent to the user: `#/now`. */
  async goTo(hash: string): Promise<void> {
    await this.page.goto(`${this.#origin}/${hash}`);
  }

  /** Waits until each text can be seen. */
  async see(...texts: (string | RegExp)[]): Promise<void> {
    for (const text of texts) {
      const found = this.page.getByText(text).filter({ visible: true }).first();
      await found.waitFor().catch(async (error: Error) => {
        throw new Error(`${text} is not on the page: ${await this.text()}\n${this.problems.join("\n")}`, {
          cause: error,
        });
      });
    }
  }

  /** Waits until no such text can be seen any more. */
  async seeNoLonger(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).filter({ visible: true }).first().waitFor({ state: "hidden" });
  }

  /** The page's text as a user sees it. */
  text(): Promise<string> {
    // biome-ignore lint/performance/useDomNodeTextContent: hidden text is none
    return this.page.locator("body").innerText();
  }

  expectNoProblems(): void {
    expect(this.problems).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}
