/** Whether the heavy suite runs: `npm run test:heavy`. */
export const isFull = process.env.TEST_SIZE === "full";

/** A size that is `small` in `npm test` and `full` in `npm run test:heavy`. */
export function sized<T>(small: T, full: T): T {
  return isFull ? full : small;
}
