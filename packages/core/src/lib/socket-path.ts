import { NodekeeperError } from "./errors.ts";
import { quote } from "./quote.ts";

/** The longest path of a unix socket that Linux takes, in bytes: sun_path of unix(7) less its closing NUL. */
export const longestSocketPath = 107;

/** Throws `invalid` when the path is not absolute or is longer than the kernel takes. */
export function checkSocketPath(path: string): void {
  if (!path.startsWith("/")) {
    throw new NodekeeperError("invalid", `socket path ${quote(path)} must be absolute`);
  }
  const bytes = Buffer.byteLength(path);
  if (bytes > longestSocketPath) {
    throw new NodekeeperError(
      "invalid",
      `socket path ${quote(path)} has ${bytes} bytes, the kernel takes at most ${longestSocketPath}`,
    );
  }
}
