import type { UpstreamCase } from "./case.ts";

interface Described {
  /** The title in upstream's test/e2e_node/dra_test.go. */
  upstream: string;
  driver: string;
  kubelet: string;
  expected: string;
}

/** A case of upstream that runs. */
export interface RunRow extends Described {
  /** Why it asserts something else than upstream's. Without it, it asserts the same. */
  differs?: string;
  /** Whether the case restarts the kubelet, with `restartKubelet`. */
  restarts?: boolean;
  run: (own: UpstreamCase) => Promise<void>;
}

/** A case of upstream about something that drivers of our contract do not have. */
export interface AbsentRow {
  upstream: string;
  notApplicable: string;
}

export type Row = RunRow | AbsentRow;
