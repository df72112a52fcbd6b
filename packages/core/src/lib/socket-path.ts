import { NodekeeperError } from "@nodekeeper/api/errors";
import { quote } from "@nodekeeper/api/text";

/** Maximum length of a unix socket's path on Linux, in bytes: sun_path of unix(7) without the terminating NUL. */
export const longestSocketPath = 107;

/** Throws `invalid` if the path is not absolute or too long. */
export function checkSocketPath(path: string): void {
  if (!path.startsWith("/")) {
    throw new NodekeeperError("invalid", `socket path ${quote(path)} must be absolute`);
  }
  const bytes = Buffer.byteLength(path);
  if (bytes > longestSocketPath) {
    throw new NodekeeperError(
      "invalid",
      `socket path ${quote(path)} has ${bytes} bytes, the kernel allows at most ${longestSocketPath}`,
    );
  }
}
