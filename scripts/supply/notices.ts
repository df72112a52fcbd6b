import type { BundledPackage } from "./bundled-packages.ts";

const RULE = "-".repeat(79);

/** THIRD-PARTY-NOTICES.txt: the licences of what others wrote. Packages with the same text share it. */
export function noticesOf(packages: readonly BundledPackage[]): string {
  const groups = Map.groupBy(packages, ({ licence, text }) => `${licence}\n${text}`);
  const parts = [...groups.values()].map((group) => {
    const names = group.map(({ name, version }) => `${name} ${version}`).join("\n");
    return `${RULE}\n${names}\nLicence: ${group[0]!.licence}\n\n${group[0]!.text}\n`;
  });
  return `Nodekeeper contains code of these packages.\n\n${parts.join("\n")}`;
}
