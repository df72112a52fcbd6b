import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Colours, coloursOf } from "./colours.ts";

/**
 * Calls `draw` once in the next frame after rendering, regardless of how often the component is rendered until then.
 */
export function useFrame(draw: () => void): void {
  const latest = useRef(draw);
  const frame = useRef(0);
  latest.current = draw;
  useLayoutEffect(() => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      latest.current();
    });
  });
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
}

/** Returns the width of an element in CSS pixels; 0 until known. */
export function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = element;
    if (!current) return;
    const measure = () => setWidth(Math.floor(current.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Returns the colors of the page's color scheme, updated when it changes. */
export function useColours(): Colours {
  const [colours, setColours] = useState(() => coloursOf(document.documentElement));
  useEffect(() => {
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setColours(coloursOf(document.documentElement));
    scheme.addEventListener("change", change);
    return () => scheme.removeEventListener("change", change);
  }, []);
  return colours;
}

/** Sizes a canvas for the device pixel ratio and returns its context, scaled to CSS pixels. */
export function contextOf(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  const [deviceWidth, deviceHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== deviceWidth) canvas.width = deviceWidth;
  if (canvas.height !== deviceHeight) canvas.height = deviceHeight;
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
