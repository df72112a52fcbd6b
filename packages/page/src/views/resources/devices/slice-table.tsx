import { shown } from "../../../text.ts";
import type { Driver } from "./device-state.ts";

const MOST = 200;

/** A driver's ResourceSlices by pool, as the API server has them. */
export function SliceTable({ driver: { pools, slices } }: { driver: Driver }) {
  const byPool = [...slices].sort((a, b) =>
    a.pool === b.pool ? (a.name < b.name ? -1 : 1) : a.pool < b.pool ? -1 : 1,
  );
  if (slices.length === 0)
    return <p>No ResourceSlice is published: it is written once the driver has reported a valid device.</p>;
  return (
    <details>
      <summary>
        {slices.length === 1 ? "1 ResourceSlice" : `${slices.length} ResourceSlices`} in{" "}
        {pools.length === 1 ? "1 pool" : `${pools.length} pools`}
      </summary>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th scope="col">Pool</th>
              <th scope="col">ResourceSlice</th>
              <th scope="col">Generation</th>
              <th scope="col">Devices</th>
            </tr>
          </thead>
          <tbody>
            {byPool.slice(0, MOST).map(({ name, pool, generation, devices }) => (
              <tr key={name}>
                <td>{shown(pool) || "–"}</td>
                <th scope="row">{shown(name)}</th>
                <td>{generation}</td>
                <td>{devices}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {byPool.length > MOST && <p>and {byPool.length - MOST} more</p>}
    </details>
  );
}
