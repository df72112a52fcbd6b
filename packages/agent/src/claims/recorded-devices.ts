import type { AllocatedDevice } from "./allocation.ts";

/** A device as returned to the kubelet, with its allocation as sent to the driver. */
export interface PreparedDevice extends AllocatedDevice {
  cdiDeviceIds: string[];
}

type Configuration = AllocatedDevice["configuration"][number];

/**
 * Returns devices as JSON for the state database. Each configuration is stored once, because devices of a claim share
 * them.
 */
export function deviceTexts(devices: readonly PreparedDevice[]): { devices: string; configuration: string } {
  const numbers = new Map<string, number>();
  const configurations: Configuration[] = [];
  const numberOf = (configuration: Configuration) => {
    const key = `${configuration.source} ${configuration.parameters}`;
    const number = numbers.get(key) ?? configurations.push(configuration) - 1;
    numbers.set(key, number);
    return number;
  };
  const numbered = devices.map((device) => ({
    ...device,
    configuration: device.configuration.map(numberOf),
  }));
  return { devices: JSON.stringify(numbered), configuration: JSON.stringify(configurations) };
}

/** Parses JSON from `deviceTexts`. */
export function devicesOfTexts(texts: { devices: string; configuration: string }): PreparedDevice[] {
  const configurations: Configuration[] = JSON.parse(texts.configuration);
  const numbered: (Omit<PreparedDevice, "configuration"> & { configuration: number[] })[] = JSON.parse(
    texts.devices,
  );
  return numbered.map(({ configuration, ...device }) => ({
    ...device,
    configuration: configuration.flatMap((number) => configurations[number] ?? []),
  }));
}

/** Returns devices for the header of a CDI file: without configuration, which may exceed the file's size limit. */
export function headerDevices(devices: readonly PreparedDevice[]) {
  return devices.map(({ configuration: _, ...device }) => device);
}

/** Returns the devices of a header, without their configuration. */
export function devicesOfHeader(
  devices: readonly ReturnType<typeof headerDevices>[number][],
): PreparedDevice[] {
  return devices.map((device) => ({ ...device, configuration: [] }));
}
