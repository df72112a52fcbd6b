import { expect, it } from "vitest";
import { connected, failure } from "./testing/connected.ts";

const at = (mountpoint: string) => ({ fsId: { mountpoint } });

it.each([
  ["a runtime with one store", { imageFilesystems: [at("/images")] }, "/images", "/images"],
  [
    "a runtime that keeps writable layers apart",
    { imageFilesystems: [at("/images")], containerFilesystems: [at("/layers")] },
    "/images",
    "/layers",
  ],
  [
    "a runtime that reports no filesystem of layers",
    { imageFilesystems: [at("/images")], containerFilesystems: [at("")] },
    "/images",
    "/images",
  ],
])("%s returns where images and writable layers are", async (_, answer, images, layers) => {
  await using test = await connected({ imageFsInfo: () => answer });
  expect(await test.runtime.imageFilesystem(test.signal)).toBe(images);
  expect(await test.runtime.containerFilesystem(test.signal)).toBe(layers);
});

it("a runtime that names no place at all has none", async () => {
  await using test = await connected({ imageFsInfo: () => ({}) });
  const message = "ImageFsInfo: the runtime reports no mount point of the image filesystem";
  expect(await failure(test.runtime.imageFilesystem(test.signal))).toMatchObject({ message });
  expect(await failure(test.runtime.containerFilesystem(test.signal))).toMatchObject({ message });
});
