import { randomBytes, timingSafeEqual } from "node:crypto";

/** 256 random bits, for an address. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Whether two secrets are equal, in a time that does not depend on their content. */
export function isSame(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)];
  return first.length === second.length && timingSafeEqual(first, second);
}
