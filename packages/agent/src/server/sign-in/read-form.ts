import type { IncomingMessage } from "node:http";

// A token that fits a cookie, percent-encoded at worst.
const LONGEST_FORM_BYTES = 16 * 1024;

/** The body of a form; undefined where it is longer than 16 KiB, or does not arrive as a whole. Never rejects. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // What is left stays unread, and the connection open for the answer.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      bytes += (chunk as Buffer).length;
      if (bytes > LONGEST_FORM_BYTES) return undefined;
      chunks.push(chunk as Buffer);
    }
  } catch {
    // The client closed the connection.
    return undefined;
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}
