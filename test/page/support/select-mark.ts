import { until } from "@nodekeeper/testing/until";
import type { Locator, Page } from "playwright-core";

/**
 * Presses `[` on the timeline, from the latest mark to earlier ones, until `wanted` is visible in the detail of the selected
 * mark. Presses the key again only after the previous press has taken effect: a pending one would replace the detail while
 * the caller clicks it.
 */
export async function selectMark(page: Page, wanted: Locator): Promise<void> {
  const marks = page.getByRole("group", { name: "What happened" }).getByRole("button");
  await marks.first().waitFor();
  const detail = page.getByRole("complementary", { name: "Detail" });
  let last = "";
  await until("the mark is selected", async () => {
    // biome-ignore lint/performance/useDomNodeTextContent: as a user sees it
    const shown = (await detail.isVisible()) ? await detail.innerText() : "";
    if (shown !== "" && shown === last) return false;
    if (await wanted.isVisible()) return true;
    last = shown;
    await page.keyboard.press("[");
    return false;
  });
}
