import {
  contentOf,
  customNodeResource,
  metadata,
  node,
  type Plugin,
  type ReportContent,
  serveReporterPlugin,
  status,
} from "@nodekeeper/sdk";
import type { Process } from "../machine/process.ts";
import { REJECTED } from "./api-server.ts";
import { PluginActor } from "./plugins.ts";

/** Ends the names of fields that only a liar reports. */
export const FALSE_FIELD = "-lie";

/** What a reporter reports before its value. The agent must publish the value, and of this only what is valid. */
const reporterLies: Readonly<Record<string, (name: string) => ReportContent[]>> = {
  // Of two values of a field, the last one is published.
  fieldTwice: (name) => [capacity({ [`widgets.example/${name}`]: "1000000" })],
  otherKinds: (name) => [
    contentOf({ group: "", version: "v1", kind: "Pod" }, metadata("labels", { [name]: "yes" })),
    contentOf({ group: "apps", version: "v1", kind: "Deployment" }, metadata("labels", { [name]: "yes" })),
  ],
  hugeValues: (name) => [
    capacity({ [`widgets.example/${name}${FALSE_FIELD}`]: "9223372036854775807" }),
    node(metadata("annotations", { [`example.dev/${name}${FALSE_FIELD}`]: "x".repeat(100_000) })),
  ],
  invalidValues: (name) => [
    capacity({ [`widgets.example/${name}${FALSE_FIELD}`]: "a lot" }),
    node(
      metadata("labels", { [`example.dev/${name}${FALSE_FIELD}`]: "no label" }),
      status("capacity", { [`example.dev/${name}${FALSE_FIELD}`]: "-1" }),
    ),
  ],
  rejectedValues: () => [
    customNodeResource(metadata("annotations", { [REJECTED]: "yes" }), status("resources", {})),
    node(metadata("annotations", { [REJECTED]: "yes" })),
  ],
};

/** Reports a value of its own on the CustomNodeResource and the Node. Sometimes withdraws it. */
export class Reporter extends PluginActor {
  readonly type = "ReporterPlugin";
  /** All it has reported, in order. Undefined: it withdrew its value. */
  readonly reports: (number | undefined)[] = [0];
  /** A key of `reporterLies`. Undefined if it is honest. */
  falsehood: string | undefined;
  #changed = () => {};

  /** What it reports now. */
  get value(): number | undefined {
    return this.reports.at(-1);
  }

  change(): void {
    if (this.machine.chance(0.2)) this.#report(undefined);
    else this.report();
  }

  /** Reports another value. */
  report(): void {
    this.#report(this.reports.length);
  }

  /** Is replaced by a version that reports another value. */
  replace(): void {
    this.history.note(this.name, "is replaced by another version");
    this.retire();
    this.report();
    this.renew();
  }

  get isLying(): boolean {
    return this.falsehood !== undefined;
  }

  lie(): void {
    this.#lie(this.machine.pick([undefined, ...Object.keys(reporterLies)]));
  }

  override settle(): void {
    super.settle();
    if (this.falsehood !== undefined && !this.isStubborn) this.#lie(undefined);
  }

  #lie(falsehood: string | undefined): void {
    this.falsehood = falsehood;
    this.history.note(this.name, falsehood === undefined ? "reports the truth" : `reports ${falsehood}`);
    this.#wake();
  }

  #report(value: number | undefined): void {
    this.reports.push(value);
    this.history.note(this.name, `reports ${this.value ?? "nothing"}`);
    this.#wake();
  }

  #wake(): void {
    // Not as it is now: of a process that has just started, it is that of the one before.
    this.process?.after(0, () => this.#changed());
  }

  #contents(): ReportContent[] {
    const { name, value, falsehood } = this;
    const lies = falsehood === undefined ? [] : reporterLies[falsehood]!(name);
    // A value that is alone is reported once.
    if (value === undefined) return falsehood === "fieldTwice" ? [] : lies;
    return [
      ...lies,
      capacity({ [`widgets.example/${name}`]: `${value}` }),
      node(metadata("labels", { [`example.dev/${name}`]: `v${value}` })),
    ];
  }

  protected serve(process: Process): Plugin {
    let contents = () => this.#contents();
    this.retire = () => {
      const last = contents();
      contents = () => last;
    };
    const setChanged = (changed: () => void) => {
      if (this.process === process) this.#changed = changed;
    };
    async function* report(signal: AbortSignal): AsyncGenerator<ReportContent[]> {
      while (!signal.aborted) {
        yield contents();
        await new Promise<void>(setChanged);
      }
    }
    return serveReporterPlugin({ ...this.optionsFor(process), report });
  }
}

function capacity(value: Record<string, string>): ReportContent {
  return customNodeResource(status("resources", { capacity: value }));
}
