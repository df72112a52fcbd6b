import type { TestProject } from "vitest/node";
import { launchChromium } from "./chromium.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where `connectTo` finds the browser of this run. */
    browser: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const server = await launchChromium();
  project.provide("browser", server.wsEndpoint());
  return () => server.close();
}
