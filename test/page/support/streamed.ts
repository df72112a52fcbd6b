import type { Page } from "playwright-core";

/** A message of the agent's stream that the page received. */
export interface Streamed {
  name: "events" | "rounds" | "snapshot";
  // biome-ignore lint/suspicious/noExplicitAny: documents of any shape
  data: any;
}

declare global {
  var streamedMessages: Streamed[];
}

/** Keeps what the page's streams receive, from its next load on. To be called before the page is opened. */
export async function keepStreamed(page: Page): Promise<void> {
  await page.addInitScript(() => {
    globalThis.streamedMessages = [];
    const names = ["events", "rounds", "snapshot"] as const;
    globalThis.EventSource = class extends EventSource {
      constructor(url: string | URL, init?: EventSourceInit) {
        super(url, init);
        for (const name of names)
          this.addEventListener(name, (message) => {
            globalThis.streamedMessages.push({ name, data: JSON.parse(message.data) });
          });
      }
    };
  });
}

export function streamed(page: Page): Promise<Streamed[]> {
  return page.evaluate(() => globalThis.streamedMessages);
}
