// What a page would load from another address.
const MEDIA =
  /<(script|img|iframe|link|source|video|audio|track|object|embed|form|use|image|base|meta)\b[^>]*>/gi;
const LOADED =
  /\b(?:src|srcset|href|data|action|poster|content)\s*=\s*["']?\s*((?:[a-z][a-z+.-]*:)?\/\/[^"'\s>]+)/i;
const STYLE = /(?:@import\s+|url\(\s*)["']?\s*((?:[a-z]+:)?\/\/[^"')\s]+)/gi;
const SCRIPT =
  /\b(?:fetch|import|importScripts|WebSocket|EventSource|sendBeacon)\s*\(\s*["'`]((?:[a-z]+:)?\/\/[^"'`]+)/gi;

/** Addresses of other hosts that HTML, CSS or JavaScript loads by itself; links to follow are none. */
export function foreignAddresses(text: string): string[] {
  const media = [...text.matchAll(MEDIA)].map(([tag]) => LOADED.exec(tag)?.[1]);
  const others = [...text.matchAll(STYLE), ...text.matchAll(SCRIPT)].map(([, address]) => address);
  return [...media, ...others].filter((address) => address !== undefined);
}
