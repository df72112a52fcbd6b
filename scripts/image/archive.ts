import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, gzipSync } from "node:zlib";
import { run } from "../programs.ts";

// The media types of github.com/opencontainers/image-spec, media-types.md.
const INDEX = "application/vnd.oci.image.index.v1+json";
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIGURATION = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";

/** What refers to a blob: image-spec, descriptor.md. */
interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  platform?: { architecture: string; os: "linux" };
  annotations?: Readonly<Record<string, string>>;
}

/** One layer of an image. */
export interface Layer {
  descriptor: Descriptor;
  /** Of the archive before it was compressed: image-spec, config.md, `diff_ids`. */
  diffId: string;
  /** What `docker history` shows of it. */
  origin: string;
}

/** The image of one architecture. */
export interface PlatformImage {
  /** In Go's words: amd64, arm64. */
  architecture: string;
  layers: readonly Layer[];
  /** The `config` of the image's configuration: entry point, environment, labels. */
  runtime: object;
}

/** Images, as a directory in the OCI image layout; the same input gives the same bytes. */
export class ImageLayout {
  readonly #directory: string;
  readonly #created: string;
  readonly #epochSeconds: number;

  /**
   * @param directory an empty directory
   * @param epochSeconds the time that every file and the image itself have: SOURCE_DATE_EPOCH of reproducible-builds.org
   */
  constructor(directory: string, epochSeconds: number) {
    this.#directory = directory;
    this.#epochSeconds = epochSeconds;
    this.#created = new Date(epochSeconds * 1000).toISOString().replace(".000Z", "Z");
    mkdirSync(join(directory, "blobs", "sha256"), { recursive: true });
    writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  }

  /** Makes a layer of what lies in a directory; the owner becomes root, and no other user may write. */
  async addLayer(content: string, origin: string): Promise<Layer> {
    const tar = `${this.#directory}.layer.tar`;
    await run("tar", [...this.#tarOptions("go-w,a+rX"), "-C", content, "-cf", tar, "."]);
    const bytes = readFileSync(tar);
    await run("rm", [tar]);
    const compressed = gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION });
    return { descriptor: this.#addBlob(LAYER, compressed), diffId: digestOf(bytes), origin };
  }

  /** Adds images under one name, as an index from which a runtime takes that of its architecture. */
  finish(name: string, images: readonly PlatformImage[]): void {
    const manifests = images.map((image) => this.#addImage(image));
    const [, tag = "latest"] = /:([^:/]+)$/.exec(name) ?? [];
    const index = this.#addJson(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests });
    // containerd takes the whole name from the first, skopeo the tag from the second.
    const annotations = { "io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag };
    const entry = { schemaVersion: 2, mediaType: INDEX, manifests: [{ ...index, annotations }] };
    writeFileSync(join(this.#directory, "index.json"), JSON.stringify(entry));
  }

  /** Writes all of it into one file, which `ctr image import`, `docker load` and `skopeo copy oci-archive:` read. */
  async writeArchive(file: string): Promise<void> {
    await run("tar", [
      ...this.#tarOptions("go-w,a+rX"),
      "-C",
      this.#directory,
      "-cf",
      file,
      "oci-layout",
      "index.json",
      "blobs",
    ]);
  }

  #addImage({ architecture, layers, runtime }: PlatformImage): Descriptor {
    const created = this.#created;
    const platform = { architecture, os: "linux" } as const;
    const config = this.#addJson(CONFIGURATION, {
      created,
      ...platform,
      config: runtime,
      rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(({ origin }) => ({ created, created_by: origin })),
    });
    const descriptors = layers.map(({ descriptor }) => descriptor);
    const manifest = { schemaVersion: 2, mediaType: MANIFEST, config, layers: descriptors };
    return { ...this.#addJson(MANIFEST, manifest), platform };
  }

  #addJson(mediaType: string, value: object): Descriptor {
    return this.#addBlob(mediaType, Buffer.from(JSON.stringify(value)));
  }

  #addBlob(mediaType: string, bytes: Buffer): Descriptor {
    const digest = digestOf(bytes);
    writeFileSync(join(this.#directory, "blobs", ...digest.split(":")), bytes);
    return { mediaType, digest, size: bytes.length };
  }

  #tarOptions(mode: string): string[] {
    const owner = ["--owner=0", "--group=0", "--numeric-owner"];
    return ["--sort=name", `--mtime=@${this.#epochSeconds}`, ...owner, `--mode=${mode}`, "--format=gnu"];
  }
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
