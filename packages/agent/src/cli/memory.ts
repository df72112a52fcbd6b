import { setFlagsFromString } from "node:v8";

/**
 * Configures V8 for low memory use rather than speed. Call it before much is allocated. Measured with 50 plugins:
 * 129 MB RSS without, 92 MB with.
 */
export function keepProcessSmall(): void {
  setFlagsFromString("--optimize-for-size");
  // Most objects are short-lived. A young generation that has grown is not returned to the system.
  setFlagsFromString("--semi-space-growth-factor=1");
  // Hot functions still reach TurboFan. Maglev's code and compile time cost more here than it saves.
  setFlagsFromString("--no-maglev");
}
