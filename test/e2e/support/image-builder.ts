import { execFile } from "node:child_process";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);

/** Files and directories of the machine that the commands of a build see: path on the machine to path in the build. */
export type BuildMounts = Readonly<Record<string, string>>;

// buildah starts itself again without LD_LIBRARY_PATH. In a mount namespace, the linker's cache names its libraries.
const script = 'mount --bind "$0" /etc/ld.so.cache && exec "$@"';

/** buildah, with its images below a directory. It pulls none. Needs root. */
export class ImageBuilder {
  readonly #directory: string;
  readonly #env: Record<string, string>;

  private constructor(directory: string, env: Record<string, string>) {
    this.#directory = directory;
    this.#env = env;
  }

  static async create(directory: string): Promise<ImageBuilder> {
    mkdirSync(join(directory, "tmp"), { recursive: true });
    const write = (name: string, ...lines: string[]) => {
      writeFileSync(join(directory, name), `${lines.join("\n")}\n`);
      return join(directory, name);
    };
    const env = {
      TMPDIR: join(directory, "tmp"),
      // Needs no namespaces of users and networks.
      BUILDAH_ISOLATION: "chroot",
      CONTAINERS_CONF: write("containers.conf", "[containers]"),
      CONTAINERS_STORAGE_CONF: write(
        "storage.conf",
        "[storage]",
        'driver = "vfs"',
        `runroot = "${directory}/run"`,
        `graphroot = "${directory}/images"`,
      ),
      CONTAINERS_REGISTRIES_CONF: write("registries.conf", 'unqualified-search-registries = ["docker.io"]'),
    };
    write("policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}');
    const libraries = globSync(join(unpacked(), "{,usr/}lib/*-linux-gnu"));
    const linker = write("ld.so.conf", readFileSync("/etc/ld.so.conf", "utf8"), ...libraries);
    await execute("ldconfig", ["-f", linker, "-C", join(directory, "ld.so.cache")]);
    return new ImageBuilder(directory, env);
  }

  /** Makes an image of a directory alone, under a name that Dockerfiles give. */
  async base(name: string, directory: string, path: string): Promise<void> {
    const file = join(this.#directory, "Dockerfile.base");
    writeFileSync(file, `FROM scratch\nCOPY . /\nENV PATH=${path}\n`);
    await this.#build(`docker.io/library/${name}`, directory, ["--file", file]);
  }

  /** Builds the image of a directory's Dockerfile, and returns the path of its archive in the form of `docker save`. */
  async build(name: string, directory: string, mounts: BuildMounts): Promise<string> {
    const volumes = Object.entries(mounts).flatMap(([from, to]) => ["--volume", `${from}:${to}`]);
    await this.#build(name, directory, volumes);
    const archive = join(this.#directory, `${name.replaceAll(/\W/g, "-")}.tar`);
    await this.#run("push", ...this.#policy, name, `docker-archive:${archive}:${name}`);
    return archive;
  }

  get #policy(): string[] {
    return ["--signature-policy", join(this.#directory, "policy.json")];
  }

  async #build(name: string, directory: string, options: readonly string[]): Promise<void> {
    await this.#run("build", ...this.#policy, "--pull-never", "--tag", name, ...options, directory);
  }

  async #run(...words: readonly string[]): Promise<void> {
    const cache = join(this.#directory, "ld.so.cache");
    const args = ["--mount", "sh", "-c", script, cache, join(unpacked(), "usr/bin/buildah"), ...words];
    const env = { ...process.env, ...this.#env };
    await execute("unshare", args, { env, maxBuffer: 64 * 1024 * 1024 }).catch((error) => {
      throw new Error(`buildah ${words.join(" ")}:\n${`${error.stdout}${error.stderr}`.slice(-8_000)}`);
    });
  }
}

// The part is a script beside what was unpacked.
function unpacked(): string {
  return join(dirname(pathOf("buildah")), "..");
}
