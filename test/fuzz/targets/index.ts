import type { FuzzTarget } from "../fuzz-target.ts";
import { configuration } from "./configuration.ts";
import { contents } from "./contents.ts";
import { cri } from "./cri.ts";
import { devices } from "./devices.ts";
import { eviction } from "./eviction.ts";
import { http } from "./http.ts";
import { policies } from "./policies.ts";

/** All targets, in the order of the help. */
export const targets: readonly FuzzTarget[] = [
  contents,
  devices,
  eviction,
  cri,
  configuration,
  policies,
  http,
];
