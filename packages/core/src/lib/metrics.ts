import { Counter, Gauge, Histogram, Registry } from "prom-client";

export { type Counter, type Histogram, Registry };

/** Labels and value of a series that is read on each scrape. */
export type Sample<L extends string> = readonly [labels: Record<L, string>, value: number];

/**
 * Returns functions that declare a module's metrics, one row per metric with its name, help text and labels. A row
 * registers the metric and returns its handle. Call it once per registry.
 * @param prefix prefix of all names, such as "nodekeeper_plugins_"
 */
export function metricTable(registry: Registry, prefix: string) {
  const common = <L extends string>(name: string, help: string, labelNames: readonly L[]) => ({
    name: prefix + name,
    help,
    labelNames,
    registers: [registry],
  });
  return {
    counter: <L extends string = never>(name: string, help: string, labels: readonly L[] = []) =>
      new Counter<L>(common(name, help, labels)),
    gauge: <L extends string = never>(name: string, help: string, labels: readonly L[] = []) =>
      new Gauge<L>(common(name, help, labels)),
    /** Each bucket adds one series per combination of labels. */
    histogram: <L extends string = never>(
      name: string,
      help: string,
      buckets: number[],
      labels: readonly L[] = [],
    ) => new Histogram<L>({ ...common(name, help, labels), buckets }),
    /** A gauge without labels that is read on each scrape. Undefined leaves its value unchanged. */
    scraped(name: string, help: string, read: () => number | undefined | Promise<number | undefined>): void {
      new Gauge({
        ...common(name, help, []),
        async collect() {
          const value = await read();
          if (value !== undefined) this.set(value);
        },
      });
    },
    /** A gauge with labels whose series are read on each scrape. Series that are no longer returned are removed. */
    scrapedBy<L extends string>(
      name: string,
      help: string,
      labels: readonly L[],
      read: () => Iterable<Sample<L>>,
    ): void {
      new Gauge<L>({
        ...common(name, help, labels),
        collect() {
          this.reset();
          for (const [values, value] of read()) this.set(values, value);
        },
      });
    },
    /** A counter whose total is read on each scrape. */
    scrapedTotal(name: string, help: string, total: () => number): void {
      new Counter({
        ...common(name, help, []),
        collect() {
          this.reset();
          this.inc(total());
        },
      });
    },
  };
}
