import { Table } from "../../../parts/table.tsx";
import { shown } from "../../../text.ts";
import type { Driver } from "./device-state.ts";

const MOST = 200;

/** A driver's ResourceSlices by pool, as in the API server. */
export function SliceTable({ driver: { pools, slices } }: { driver: Driver }) {
  if (slices.length === 0)
    return <p>No ResourceSlice is published: it is written once the driver has reported a valid device.</p>;
  const keyOf = ({ pool, name }: Driver["slices"][number]) => `${pool}\n${name}`;
  const byPool = [...slices].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return (
    <details>
      <summary>
        {slices.length === 1 ? "1 ResourceSlice" : `${slices.length} ResourceSlices`} in{" "}
        {pools.length === 1 ? "1 pool" : `${pools.length} pools`}
      </summary>
      <Table
        label="ResourceSlices"
        columns={["ResourceSlice", "Pool", "Generation", "Devices"]}
        rows={byPool.slice(0, MOST).map(({ name, pool, generation, devices }) => ({
          key: name,
          cells: [shown(name), shown(pool) || "–", generation, devices],
        }))}
      />
      {byPool.length > MOST && <p>and {byPool.length - MOST} more</p>}
    </details>
  );
}
