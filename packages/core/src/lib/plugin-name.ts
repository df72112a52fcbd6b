import { PluginNameRefused } from "@nodekeeper/api/errors";
import { quote } from "@nodekeeper/api/text";

const longestName = 253;
const namePattern = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;

/**
 * Throws `invalid` unless the name has 1 to 253 letters, digits, '.', '-' and '_', and starts and ends with a letter or
 * digit.
 */
export function checkPluginName(name: string): void {
  if (name.length <= longestName && namePattern.test(name)) return;
  throw new PluginNameRefused({
    name: quote(name),
    rule: `a name has 1 to ${longestName} characters out of letters, digits, '.', '-' and '_', and begins and ends with a letter or digit`,
  });
}
