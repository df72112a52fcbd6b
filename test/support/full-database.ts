import { expect } from "vitest";
import type { StateDatabase } from "../../packages/agent/src/state/index.ts";

/**
 * Leaves no space in a state database: SQLite answers SQLITE_FULL at its page limit just as on a full disk. What is free
 * below the limit is taken. Returns a function that ends it.
 */
export function fillUp({ connection }: StateDatabase): () => void {
  const { page_count: pages } = connection.prepare("PRAGMA page_count").get() as { page_count: number };
  connection.exec(`PRAGMA max_page_count = ${pages}`);
  const fill = connection.prepare(
    "INSERT INTO lifecycle_record (pod_uid, record) VALUES (hex(randomblob(9)), hex(randomblob(300)))",
  );
  expect(() => {
    for (;;) fill.run();
  }).toThrow(/full/);
  return () => connection.exec("PRAGMA max_page_count = 1000000");
}
