import { type Browser, type BrowserServer, chromium } from "playwright-core";
import { findProgram } from "../../../scripts/programs.ts";

/** The path of Chromium: `CHROMIUM`, or the first on PATH; undefined where there is none. */
export function findChromium(): string | undefined {
  const { CHROMIUM } = process.env;
  if (CHROMIUM) return CHROMIUM;
  return ["chromium", "chromium-browser", "google-chrome"]
    .map(findProgram)
    .find((path) => path !== undefined);
}

/** Starts Chromium without a window. Throws where there is none. */
export async function launchChromium(): Promise<BrowserServer> {
  const executablePath = findChromium();
  if (!executablePath)
    throw new Error("no Chromium on PATH: run `node test/page/prepare.ts`, or set CHROMIUM to its path");
  // Its sandbox needs another user than root, or user namespaces. It opens nothing but pages of these tests.
  return await chromium.launchServer({ executablePath, chromiumSandbox: false });
}

/** @param endpoint of `launchChromium`: one browser for all files of a run */
export function connectTo(endpoint: string): Promise<Browser> {
  return chromium.connect(endpoint);
}
