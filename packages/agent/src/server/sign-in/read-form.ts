import type { IncomingMessage } from "node:http";

// The largest token that fits in a cookie, percent-encoded in the worst case.
const LONGEST_FORM_BYTES = 16 * 1024;

/** Reads the body of a form. Resolves with undefined if it exceeds 16 KiB or is incomplete. Never rejects. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // The rest stays unread, and the connection stays open for the response.
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
