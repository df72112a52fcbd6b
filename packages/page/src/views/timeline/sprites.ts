import type { Colours } from "./colours.ts";
import type { Label, Sign } from "./row-shapes.ts";

const FONT = "11px system-ui, sans-serif";
const SIGN_FONT = "bold 12px system-ui, sans-serif";
const SIGN_BOX = 22;
const MOST = 200;

/**
 * Signs and texts for canvases, drawn once and copied, because drawing text is the main cost if there are thousands.
 */
export class Sprites {
  readonly #signs = new Map<string, HTMLCanvasElement>();
  readonly #widths = new Map<string, number>();

  /** Draws a sign outlined in the background color, so that it is visible on bars and next to them. */
  sign(canvas: CanvasRenderingContext2D, { glyph, tone, x, y }: Sign, colours: Colours): void {
    const [colour, { ground }] = [colours[tone], colours];
    const ratio = devicePixelRatio || 1;
    const key = `${glyph} ${colour} ${ground} ${ratio}`;
    let sprite = this.#signs.get(key);
    if (!sprite) {
      // Cached for both color schemes and each zoom level of the browser.
      if (this.#signs.size >= MOST) this.#signs.clear();
      sprite = signOf(glyph, colour, ground, ratio);
      this.#signs.set(key, sprite);
    }
    canvas.drawImage(sprite, x - SIGN_BOX / 2, y - SIGN_BOX / 2, SIGN_BOX, SIGN_BOX);
  }

  /** Draws a text that ends at `x`, if there is space for it. */
  text(canvas: CanvasRenderingContext2D, { text, x, y, room }: Label, colour: string): void {
    canvas.font = FONT;
    let width = this.#widths.get(text);
    if (width === undefined) {
      if (this.#widths.size >= MOST) this.#widths.clear();
      width = canvas.measureText(text).width;
      this.#widths.set(text, width);
    }
    if (width > room) return;
    canvas.fillStyle = colour;
    canvas.textAlign = "right";
    canvas.textBaseline = "middle";
    canvas.fillText(text, x, y);
  }
}

function signOf(glyph: string, colour: string, ground: string, ratio: number): HTMLCanvasElement {
  const sprite = document.createElement("canvas");
  sprite.width = sprite.height = Math.ceil(SIGN_BOX * ratio);
  const context = sprite.getContext("2d");
  if (!context) return sprite;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = SIGN_FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = ground;
  context.strokeText(glyph, SIGN_BOX / 2, SIGN_BOX / 2);
  context.fillStyle = colour;
  context.fillText(glyph, SIGN_BOX / 2, SIGN_BOX / 2);
  return sprite;
}
