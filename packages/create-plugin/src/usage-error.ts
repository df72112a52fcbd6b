/** An error that the user can correct. Only its message is printed. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
