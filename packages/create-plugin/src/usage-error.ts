/** What the caller can correct; its message is all that is printed. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
