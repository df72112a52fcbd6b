import { getRawAsset, isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import { pageDirectory, type ReadPageFile } from "../server/index.ts";

/**
 * Reads the page's files: assets of the single executable, files next to the bundle, or the output of `npm run page`.
 */
export function pageFiles(): ReadPageFile {
  if (isSea()) return readAsset;
  const isSource = import.meta.url.endsWith(".ts");
  return pageDirectory(fileURLToPath(new URL(isSource ? "../../../page/dist" : "./page", import.meta.url)));
}

async function readAsset(name: string): Promise<Uint8Array | undefined> {
  try {
    return new Uint8Array(getRawAsset(`page/${name}`));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_SINGLE_EXECUTABLE_APPLICATION_ASSET_NOT_FOUND")
      return undefined;
    throw error;
  }
}
