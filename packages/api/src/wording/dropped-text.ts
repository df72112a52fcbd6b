/** A `DroppedField`, or its form in the HTTP API. */
export interface ShownField {
  pool?: string | undefined;
  device?: string | undefined;
  field: string;
  feature?: string | undefined;
}

/**
 * Describes a field reported by a driver that the API server does not store: its name, its owner, and the reason, if
 * known.
 */
export function droppedText({ pool, device, field, feature }: ShownField): string {
  const owner = [...(device === undefined ? [] : [device]), ...(pool === undefined ? [] : [`pool ${pool}`])];
  const name = [field, ...owner].join(" of ");
  // A disabled feature gate and a server older than the feature are indistinguishable.
  if (feature) return `${name} (needs the feature ${feature})`;
  return `${name} (stored with another content than was sent, as an admission webhook may do)`;
}
