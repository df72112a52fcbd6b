import { posix } from "node:path";
import { NodekeeperError, quote } from "@nodekeeper/core/lib";

const LONGEST_TEXT = 64 * 1024;

/** The most entries of each kind in the edits of one device, or of a claim. */
export const MOST_ENTRIES = 256;

/** An error of a driver's edits. `field` is relative to the edits; empty: the edits as a whole. */
export function refusal(field: string, message: string): NodekeeperError {
  return new NodekeeperError("invalid", field === "" ? `edits ${message}` : `edits.${field}: ${message}`);
}

/** Throws `invalid` unless the list has at most 256 entries. */
export function checkCount(field: string, { length }: { length: number }): void {
  if (length > MOST_ENTRIES) throw refusal(field, `has ${length} entries, more than ${MOST_ENTRIES}`);
}

/** Throws `invalid` unless an OCI runtime specification can contain the text. */
export function plain(text: string, field: string, mayBeEmpty = false): void {
  if (text === "" && !mayBeEmpty) throw refusal(field, "is empty");
  if (text.length > LONGEST_TEXT) throw refusal(field, `is longer than ${LONGEST_TEXT} characters`);
  if (text.includes("\0")) throw refusal(field, "contains a null character");
}

/** Throws `invalid` unless the path is absolute and normalized. */
export function absolute(path: string, field: string): void {
  plain(path, field);
  if (!path.startsWith("/")) throw refusal(field, `${quote(path)} is not an absolute path`);
  if (posix.normalize(path) !== path) throw refusal(field, `${quote(path)} is not a normalized path`);
}

/** Throws `invalid` unless a container's path may be changed. */
export function containerPath(path: string, field: string): void {
  absolute(path, field);
  // runc refuses "/"; a mount on /proc would hide the container's processes.
  if (path === "/" || path === "/proc" || path.startsWith("/proc/"))
    throw refusal(field, `${quote(path)} can't be changed in a container`);
}

/** Returns an environment variable. Throws `invalid` unless it is NAME=value. */
export function variable(text: string, field: string): string {
  plain(text, field);
  if (text.indexOf("=") < 1) throw refusal(field, `${quote(text)} is not NAME=value`);
  return text;
}
