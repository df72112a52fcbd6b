// Puts the browser of the page's tests in place: Debian's, where the machine has none.
import { findProgram, printProgress, run } from "../../scripts/programs.ts";
import { findChromium } from "./support/chromium.ts";

const installed = findChromium();
if (installed) printProgress(`chromium: ${installed}`);
else await install();

async function install(): Promise<void> {
  const needed = "The tests of the page need Chromium";
  if (!findProgram("apt-get") || process.getuid?.() !== 0) {
    console.error(
      `${needed}: install it (on Debian, as root: apt-get install chromium), or set CHROMIUM to its path.`,
    );
    process.exitCode = 1;
    return;
  }
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  printProgress("installing Debian's chromium");
  try {
    await run("apt-get", ["update"], { env });
    await run("apt-get", ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"], {
      env,
    });
  } catch (error) {
    console.error(`${needed}, and apt-get can't install it: ${(error as Error).message}`);
    process.exitCode = 1;
    return;
  }
  printProgress(`chromium: ${findChromium()}`);
}
