import { NodekeeperError } from "./errors.ts";
import { quote } from "./quote.ts";

const longestName = 253;
const namePattern = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;

/** Throws `invalid` unless the name is 1 to 253 letters, digits, '.', '-', '_' with a letter or digit at both ends. */
export function checkPluginName(name: string): void {
  if (name.length <= longestName && namePattern.test(name)) return;
  throw new NodekeeperError(
    "invalid",
    `plugin name ${quote(name)} is refused: a name has 1 to ${longestName} characters out of letters, digits, ` +
      "'.', '-' and '_', and begins and ends with a letter or digit",
    { id: "NK1302" },
  );
}
