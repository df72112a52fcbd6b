import { NodekeeperError } from "@nodekeeper/core/lib";

// A device that was removed between the listing and the read answers ENODEV or ENXIO.
const absentCodes = new Set(["ENOENT", "ENOTDIR", "ENODEV", "ENXIO"]);

/** Undefined for an error of an absent file; throws what any other means. */
export function absentOrThrow(place: string, error: unknown): undefined {
  if (error instanceof NodekeeperError) throw error;
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (absentCodes.has(code)) return undefined;
  const kind = code === "EACCES" || code === "EPERM" ? "forbidden" : "unavailable";
  throw new NodekeeperError(kind, `${place} can't be read`, { cause: error });
}
