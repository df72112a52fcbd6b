import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Live } from "../../live.ts";
import { at, quantity, shown } from "../../text.ts";
import type { ViewProps } from "../../view-props.ts";

type Reading = Live["readings"][number]["readings"][number];

/** One plot for each plugin and signal: observed value against its threshold. Bars of containers and marks are to follow. */
export function TimelineView({ live, address }: ViewProps) {
  const [from, to] = [Number(address.query.get("from")), Number(address.query.get("to"))];
  const range = from > 0 && to > from ? { from, to } : undefined;
  const signals = new Map<string, Reading>();
  for (const { readings } of live.readings)
    for (const reading of readings)
      if (reading.observed !== null) signals.set(`${reading.plugin} ${reading.scope}`, reading);
  if (signals.size === 0)
    return (
      <p>
        No plugin has reported a value yet. Plugins report with each round, or once their threshold is met.
      </p>
    );
  return (
    <>
      {[...signals].map(([key, last]) => (
        <Signal key={key} live={live} last={last} range={range} />
      ))}
      <h2>Rounds in which something happened</h2>
      <ol reversed>
        {live.rounds
          .slice(-100)
          .reverse()
          .map(({ id, at: when, victims, dryRunVictims, met }) => (
            <li key={id}>
              <time>{at(when)}</time> {met.map((text) => shown(text, 300)).join("; ")}{" "}
              {victims.map(({ namespace, name }) => (
                <a href={`#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`}>
                  evicts {shown(namespace)}/{shown(name)}{" "}
                </a>
              ))}
              {dryRunVictims.length > 0 && `${dryRunVictims.length} only recorded (dry run)`}
            </li>
          ))}
      </ol>
    </>
  );
}

function Signal({
  live,
  last,
  range,
}: {
  live: Live;
  last: Reading;
  range: { from: number; to: number } | undefined;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const { plugin, scope, unit, operator } = last;
  useEffect(() => {
    plot.current = new uPlot(
      {
        width: place.current!.clientWidth,
        height: 120,
        series: [
          {},
          { label: "observed", stroke: "var(--line)" },
          { label: "threshold", stroke: "var(--bad)", dash: [4, 4] },
        ],
        axes: [{}, { values: (_, values) => values.map((value) => quantity(value, unit)), size: 70 }],
        legend: { show: false },
      },
      dataOf(live, last),
      place.current!,
    );
    return () => plot.current?.destroy();
  }, []);
  useEffect(() => {
    plot.current?.setData(dataOf(live, last));
    if (range) plot.current?.setScale("x", { min: range.from / 1_000, max: range.to / 1_000 });
  });
  const name = `${shown(plugin, 60)}${scope ? `: ${shown(scope, 60)}` : ""}`;
  const sign = operator === "lessThan" ? "<" : ">";
  return (
    <section aria-label={name} class={last.met === "none" ? "" : "failed"}>
      <h2>
        {name}{" "}
        <small>
          {quantity(last.observed, unit)} (met when {sign} {quantity(last.threshold, unit)})
        </small>
      </h2>
      <div ref={place} aria-hidden="true" />
    </section>
  );
}

function dataOf(live: Live, { plugin, scope }: Reading): uPlot.AlignedData {
  const found = live.readings.flatMap(({ at: when, readings }) => {
    const reading = readings.find((each) => each.plugin === plugin && each.scope === scope);
    return reading ? [{ when: when / 1_000, ...reading }] : [];
  });
  return [
    found.map(({ when }) => when),
    found.map(({ observed }) => observed),
    found.map(({ threshold }) => threshold),
  ];
}
