// Files: upload, list, sign, remove. Must not know the steps of a resumable upload.
import { SelkieError } from "./errors.js";
import { type Http, listOf, type Request } from "./http.js";
import { search } from "./operations.js";
import { resumable } from "./tus.js";
import type { CallOptions, List } from "./types.js";

type FileKind = "image" | "video" | "audio" | "file";

export interface UploadedFile {
  id: number;
  name: string;
  folder: string;
  url: string;
  /** Only of images; null if the image's format has no thumbnail. */
  thumbnailUrl?: string | null;
}

export interface FileInfo extends UploadedFile {
  type: FileKind;
  mime: string;
  size: number;
  width: number | null;
  height: number | null;
  private: boolean;
  sha256: string;
  createdAt: string;
  updatedAt: string;
}

export interface UploadOptions extends CallOptions {
  /** The file's name; by default that of a `File`. */
  readonly name?: string;
  readonly folder?: string;
  /** By default derived from the media type: `image` for pictures that get a thumbnail, `video`, `audio`, else
   * `file`. */
  readonly type?: FileKind;
  readonly private?: boolean;
  /** Replaces a file of the same name and folder, and keeps its id. */
  readonly update?: boolean;
  readonly onProgress?: (progress: { sent: number; total: number }) => void;
  /** Receives the address of a resumable upload, to be kept for `resume`. */
  readonly onStart?: (upload: string) => void;
  /** The address of an upload that was interrupted, to send the rest of the same file. */
  readonly resume?: string;
  /** Bytes above which an upload is resumable (8 MB). */
  readonly resumableAbove?: number;
  /** Bytes of each request of a resumable upload (5 MB). */
  readonly chunkSize?: number;
}

export interface ListFiles extends CallOptions {
  readonly folder?: string;
  readonly type?: FileKind;
  readonly name?: string;
  readonly order?: string | object;
  readonly limit?: number;
  readonly page?: number;
  readonly offset?: number;
  readonly count?: boolean;
}
export type FileList = List<FileInfo>;

const RESUMABLE_ABOVE_BYTES = 8_000_000;
/** An upload may be slow: its time limit grows by a millisecond for each 20 bytes (20 kB/s). */
const BYTES_PER_MS = 20;

function kindOf(mime: string): FileKind {
  if (/^image\/(jpeg|png|gif|webp|bmp|tiff|avif)$/.test(mime)) return "image";
  return (/^(video|audio)\//.exec(mime)?.[1] as FileKind) ?? "file";
}

/** Returns the folders and the name in a file's URL, `<base>/media/<project>/<folder>/<name>`: folders may be called
 * `media` too. */
function pathOf(url: string, base: string): string[] {
  const prefix = new URL(base).pathname.replace(/\/$/, "");
  const { pathname } = new URL(url, base);
  const path = pathname.startsWith(`${prefix}/media/`) ? pathname.slice(prefix.length) : pathname;
  const [, ...parts] = path.slice(path.indexOf("/media/") + "/media/".length).split("/");
  return parts.map(decodeURIComponent);
}

export class Media {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  async #send<R>(request: Request, call: CallOptions): Promise<R> {
    return (await this.#http.envelope<R>(request, call)).payload;
  }

  /** Uploads a file, in one request or, above 8 MB, resumably in parts. */
  async upload(file: Blob | ArrayBuffer | Uint8Array, options: UploadOptions = {}): Promise<UploadedFile> {
    const blob = file instanceof Blob ? file : new Blob([file as BlobPart]);
    const name = options.name ?? (file as File).name;
    if (!name) throw new TypeError("The file has no name: give it as the option name.");
    const { onProgress, timeout = this.#http.options.timeout ?? 60_000 } = options;
    const fields = { folder: options.folder, private: options.private, update: options.update };
    const type = options.type ?? kindOf(blob.type);
    const within = (bytes: number) => ({ ...options, timeout: timeout && timeout + bytes / BYTES_PER_MS });
    if (options.resume || blob.size > (options.resumableAbove ?? RESUMABLE_ABOVE_BYTES)) {
      const metadata = { filename: name, filetype: blob.type, kind: type, ...fields };
      const { id, url, thumbnailUrl } = await resumable(this.#http, blob, metadata, options, within);
      // A role may choose the folder, and need not allow to ask for it.
      const path = pathOf(url, this.#http.url);
      const file = { id, name: path.pop()!, folder: path.join("/"), url };
      return type === "image" ? { ...file, thumbnailUrl } : file;
    }
    const form = new FormData();
    for (const [field, value] of Object.entries({ type, ...fields }))
      if (value !== undefined) form.append(field, String(value));
    form.append("file", blob, name);
    onProgress?.({ sent: 0, total: blob.size });
    const request: Request = { method: "POST", path: "media", body: form, repeat: "undone" };
    const [uploaded] = await this.#send<[UploadedFile]>(request, within(blob.size));
    onProgress?.({ sent: blob.size, total: blob.size });
    return uploaded;
  }

  /** Cancels a resumable upload, by the address that `onStart` got. */
  cancel(upload: string, call: CallOptions = {}): Promise<void> {
    const request: Request = {
      method: "DELETE",
      path: upload,
      headers: { "tus-resumable": "1.0.0" },
      repeat: "always",
    };
    return this.#http.send(request, call, async () => {});
  }

  /** Returns the files, the newest first unless `order` is given; the list has `more` if further files follow. */
  async list({ signal, timeout, retries, headers, repeatable, ...options }: ListFiles = {}): Promise<FileList> {
    const call = { signal, timeout, retries, headers, repeatable };
    const request: Request = { method: "GET", path: `media${search(options)}`, repeat: "always" };
    return listOf(await this.#http.envelope<FileInfo[]>(request, call));
  }

  /** Returns a file's metadata, or null if no file has this id. */
  get(id: number, call: CallOptions = {}): Promise<FileInfo | null> {
    return this.#send<FileInfo>({ method: "GET", path: `media/${+id}`, repeat: "always" }, call).catch(
      (error: unknown) => {
        if (error instanceof SelkieError && error.code === "media_not_found") return null;
        throw error;
      },
    );
  }

  remove(id: number, call: CallOptions = {}): Promise<{ id: number }> {
    return this.#send({ method: "DELETE", path: `media/${+id}`, repeat: "undone" }, call);
  }

  /** Returns a URL that opens a private file without a key, for `expiresIn` seconds. */
  sign(
    id: number,
    { expiresIn, ...call }: { readonly expiresIn: number } & CallOptions,
  ): Promise<{ url: string; expiresAt: string }> {
    return this.#send({ method: "POST", path: `media/${+id}/sign`, body: { expiresIn }, repeat: "always" }, call);
  }

  /** Returns the URL of a file, or of its thumbnail; `download` makes browsers save it, also under another name. */
  url(
    file: { readonly url: string },
    { thumbnail, download }: { thumbnail?: boolean; download?: boolean | string } = {},
  ): string {
    const url = new URL(file.url, this.#http.url);
    if (thumbnail) url.searchParams.set("thumbnail", "true");
    if (download) url.searchParams.set("download", String(download));
    return url.href;
  }
}
