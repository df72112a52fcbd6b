import type { Page } from "playwright-core";

/**
 * The share of pixels of two pictures that differ visibly, 0 to 1; 1 if their sizes differ. Small differences of a color
 * are ignored, such as those of antialiasing.
 */
export function pictureDifference(page: Page, a: Buffer, b: Buffer): Promise<number> {
  return page.evaluate(
    async (pictures) => {
      const [first, second] = await Promise.all(
        pictures.map(async (base64) => {
          const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
          const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
          const context = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
          context.drawImage(image, 0, 0);
          return context.getImageData(0, 0, image.width, image.height);
        }),
      );
      if (first!.width !== second!.width || first!.height !== second!.height) return 1;
      let differing = 0;
      for (let at = 0; at < first!.data.length; at += 4) {
        const distance = [0, 1, 2].map((channel) =>
          Math.abs(first!.data[at + channel]! - second!.data[at + channel]!),
        );
        if (Math.max(...distance) > 48) differing++;
      }
      return differing / (first!.data.length / 4);
    },
    [a.toString("base64"), b.toString("base64")],
  );
}
