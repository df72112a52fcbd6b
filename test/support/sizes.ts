/** Whether the heavy suite runs: `npm run test:heavy`. */
export const isFull = process.env.TEST_SIZE === "full";

/** A size that is `small` in `npm test` and `full` in `npm run test:heavy`. */
export function sized<T>(small: T, full: T): T {
  return isFull ? full : small;
}

/** How many inputs a costly property test takes: all in `npm run test:heavy`, a quarter of them in `npm test`. */
export function inputs(full: number): number {
  return sized(Math.ceil(full / 4), full);
}
