/** Quotes external text for a message: at most 100 characters, control characters escaped. */
export function quote(text: string): string {
  const limit = 100;
  if (text.length <= limit) return JSON.stringify(text);
  return `${JSON.stringify(text.slice(0, limit))}... (${text.length} characters)`;
}
