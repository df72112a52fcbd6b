import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RowsPicture, shapesOf } from "./row-shapes.ts";
import { rowsOf } from "./rows.ts";
import { barsOfAll, eventAt } from "./testing.ts";

const range = { from: 0, to: 100_000 };
const pictureOf = (
  events: Parameters<typeof barsOfAll>[0],
  more: Partial<RowsPicture> = {},
): RowsPicture => ({
  rows: rowsOf(barsOfAll(events), [], { range, filter: "", expanded: new Set() }),
  ...{ top: 0, rowHeight: 26, labelPx: 0, range, axisPx: 1_000, now: 90_000, knownSince: 0 },
  ...{ marks: new Map(), selected: undefined },
  ...more,
});
const main = { id: "c1", name: "main", kind: "container" } as const;
const died = (at: number, exitCode: number, reason = "") =>
  eventAt(at, { type: "ContainerDied", container: main, exitCode, reason });

describe("shapes of rows", () => {
  it("have bars from start to end, and up to now where they run", () => {
    const shapes = shapesOf(pictureOf([eventAt(10, { container: main }), died(40, 1), eventAt(50)]));
    expect(shapes.bars.bad).toMatchObject([[100, 5, 300, 13]]);
    expect(shapes.bars.line).toMatchObject([[500, 5, 400, 13]]);
    expect(shapes.labels.map(({ text }) => text)).toEqual(["exit 1"]);
    expect(shapes.signs).toMatchObject([{ glyph: "✕", tone: "bad", x: 400 }]);
  });

  it("have a lane for each container of a pod, so that one that fails is not covered by another", () => {
    const sidecar = { id: "c2", name: "sidecar", kind: "container" } as const;
    const shapes = shapesOf(
      pictureOf([eventAt(1, { container: sidecar }), eventAt(10, { container: main }), died(40, 1)]),
    );
    const [[, sidecarTop = 0] = [], [, mainTop = 0, , mainHeight = 0] = []] = [
      shapes.bars.line[0],
      shapes.bars.bad[0],
    ];
    expect(shapes.bars.bad).toHaveLength(1);
    expect(mainTop).toBeGreaterThan(sidecarTop);
    expect(mainTop + mainHeight).toBeLessThanOrEqual(5 + 13);
  });

  it("show what killed a container, and what it was of a pod", () => {
    const marks = new Map([
      ["uid-web", [{ id: 1, at: 40_000, kind: "evictionSelected" as const, title: "" }]],
    ]);
    const shapes = shapesOf(
      pictureOf([eventAt(10, { container: main }), died(40, 137, "OOMKilled")], { marks }),
    );
    expect(shapes.labels.map(({ text }) => text)).toEqual(["OOMKilled"]);
    expect(shapes.signs.map(({ glyph }) => glyph)).toEqual(["▲", "◆"]);
  });

  it("are few where thousands of bars fall on a few pixels", () => {
    const events = Array.from({ length: 4_000 }, (_, index) => {
      const container = { id: `c${index >> 1}`, name: "main", kind: "container" } as const;
      const type = index % 2 === 0 ? "ContainerStarted" : "ContainerDied";
      return eventAt(index + 1, { type, at: index * 5, container, exitCode: 1 });
    });
    const { bars, starts, signs } = shapesOf(pictureOf(events));
    expect(bars.bad.length + starts.length + signs.length).toBeLessThan(700);
  });

  it("are within the axis, and never narrower than nothing, whatever the times", () => {
    const time = fc.oneof(fc.integer({ min: -1e13, max: 1e13 }), fc.integer({ min: -1_000, max: 101_000 }));
    fc.assert(
      fc.property(fc.array(time, { maxLength: 20 }), time, (times, now) => {
        const events = times.map((at, index) => {
          const container = { id: `c${index >> 1}`, name: "main", kind: "container" } as const;
          return eventAt(index + 1, {
            at,
            container,
            type: index % 2 === 0 ? "ContainerStarted" : "ContainerDied",
          });
        });
        const { bars } = shapesOf(pictureOf(events, { now }));
        for (const [x, , width] of Object.values(bars).flat()) {
          expect(width).toBeGreaterThanOrEqual(0);
          expect(x).toBeGreaterThanOrEqual(-20);
          expect(x + width).toBeLessThan(1_021);
        }
      }),
    );
  });
});
