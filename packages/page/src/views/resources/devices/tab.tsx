import { addressOf } from "../../../address.ts";
import { Waiting } from "../../../parts/notice.tsx";
import { shown } from "../../../text.ts";
import type { ViewProps } from "../../../view-props.ts";
import { DriverSection } from "./driver-section.tsx";

/** Drivers with their devices as grids, and the claims that hold them. */
export function DevicesTab({ live, address }: ViewProps) {
  const { devices: drivers, claims } = live;
  if (!drivers) return <Waiting>Waiting for the agent's first answer.</Waiting>;
  if (drivers.length === 0) return <NoDrivers />;
  const wanted = address.query.get("driver");
  const device = address.query.get("device") ?? "";
  return (
    <>
      {wanted && !drivers.some(({ name }) => name === wanted) && (
        <p>
          There is no driver {shown(wanted)} now.{" "}
          <a href={addressOf("resources", ["devices"])}>All drivers</a>
        </p>
      )}
      {wanted && drivers.length > 1 && (
        <p>
          <a href={addressOf("resources", ["devices"])}>All drivers</a>
        </p>
      )}
      {drivers
        .filter(({ name }) => !wanted || name === wanted)
        .map((driver) => (
          <DriverSection
            key={driver.name}
            driver={driver}
            chosen={device.startsWith(`${driver.name}/`) ? device.slice(driver.name.length + 1) : ""}
            isAlone={driver.name === wanted}
            claims={claims?.find((each) => each.driver === driver.name)}
          />
        ))}
    </>
  );
}

function NoDrivers() {
  return (
    <>
      <p>No device driver has registered.</p>
      <p>
        A driver appears here once it registers as a plugin of the type DRAPlugin; see{" "}
        <a href={addressOf("plugins")}>Plugins</a>.
      </p>
    </>
  );
}
